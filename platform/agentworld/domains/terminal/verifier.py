"""The rule verifier of terminals: every line of the screen that can be known is right.

Spaces at line ends, times, ids of processes and names that a program drew do not count; all else
does. The verdict is one of an error where the last command failed, and else of what follows from
the history.
"""

from collections.abc import Mapping

from agentworld.domains.base import Axis
from agentworld.domains.failure import reports_failure
from agentworld.domains.terminal.comparison import is_same
from agentworld.domains.terminal.keys import is_refusal
from agentworld.domains.terminal.transcript import last_block


def verify(predicted: str, truth: str) -> Mapping[Axis, bool | None]:
    """No verdict where the true screen is blank: there is nothing to be right about."""
    if not truth.strip():
        return {}
    axis: Axis = "errors" if is_failure(truth) else "consistency"
    return {axis: is_same(predicted, truth)}


def is_failure(screen: str) -> bool:
    """Whether the last command failed, by its words: a screen shows no exit status."""
    return is_refusal(screen) or any(reports_failure(line) for line in last_block(screen))
