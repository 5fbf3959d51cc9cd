"""The rule verifier of the shell: everything that the next command can depend on must be right.

The prompt line (exit status and folder) must be the true one. In the output, spaces at the end of a
line may differ. In an error message, the program's name and the words before the named file may
differ; the file and the reason after the last `: ` may not.
"""

from collections.abc import Mapping

from agentworld.domains.base import Axis
from agentworld.domains.shell.grammar import Screen, read_screen


def verify(predicted: str, truth: str) -> Mapping[Axis, bool | None]:
    """One verdict: on the axis `errors` if the command failed, otherwise on `consistency`.

    No verdict if the true observation has no prompt line.
    """
    true = read_screen(truth.strip("\n"))
    if not true.prompt:
        return {}
    guess = read_screen(predicted.strip("\n"))
    is_right = guess.prompt == true.prompt and _significant_parts(guess) == _significant_parts(true)
    return {"errors" if true.status else "consistency": is_right}


def _significant_parts(screen: Screen) -> list[tuple[str, ...]]:
    """The part of each line that must be right."""
    failed = screen.status != 0
    return [_significant_part(line.rstrip(), is_error=failed) for line in screen.lines]


def _significant_part(line: str, *, is_error: bool) -> tuple[str, ...]:
    before, colon, reason = line.rpartition(": ")
    if not (is_error and colon):
        return (line,)
    name = before.split(" ")[-1].strip("'\"")
    return (name, reason)
