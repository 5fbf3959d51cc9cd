"""The rule verifier of the shell: everything that the next command can depend on must be right.

The prompt line (exit status and folder) must be the true one, and so must each line of the output.
Spaces at the end of a line may differ, the quotes of an error message, and what differs in every
run: times, names of temporary files, and the processes of jobs.
"""

from collections.abc import Mapping

from agentworld.domains.base import Axis
from agentworld.domains.shell.comparison import mask_volatile
from agentworld.domains.shell.grammar import Screen, read_screen

_NO_QUOTES = str.maketrans("", "", "'\"")


def verify(predicted: str, truth: str) -> Mapping[Axis, bool | None]:
    """One verdict: on the axis `errors` if the command failed, otherwise on `consistency`.

    No verdict if the true observation has no prompt line.
    """
    true = read_screen(truth.strip("\n"))
    if not true.prompt:
        return {}
    guess = read_screen(predicted.strip("\n"))
    is_right = _are_same(_comparable_lines(guess), _comparable_lines(true))
    return {"errors" if true.status else "consistency": is_right}


def _comparable_lines(screen: Screen) -> list[str]:
    lines = [line.rstrip() for line in screen.lines]
    if screen.status:
        lines = [line.translate(_NO_QUOTES) for line in lines]
    return [*lines, screen.prompt]


def _are_same(lines: list[str], others: list[str]) -> bool:
    """Whether the lines are equal, apart from volatile parts; to mask each line would be slow."""
    return len(lines) == len(others) and all(
        line == other or mask_volatile(line) == mask_volatile(other)
        for line, other in zip(lines, others, strict=True)
    )
