"""The rule verifier of the shell: everything that the next command can depend on must be right.

The prompt line (exit status and folder) must be the true one, and so must each line of the output.
Spaces at the end of a line may differ, the quotes of an error message, and what differs in every
run: times, temporary paths, and the processes of jobs.
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
    return {"errors" if true.status else "consistency": _comparable(guess) == _comparable(true)}


def _comparable(screen: Screen) -> str:
    """The form in which two screens are equal that differ only in what may differ."""
    lines = [line.rstrip() for line in screen.lines]
    if screen.status:
        lines = [line.translate(_NO_QUOTES) for line in lines]
    return mask_volatile("\n".join([*lines, screen.prompt]))
