"""The rule verifier of terminals: every predictable line of the screen must be right.

Spaces at line ends, times, ids of processes and generated names do not count; everything else does.
The verdict belongs to the axis `errors` if the last command failed, otherwise to `consistency`.
"""

from collections.abc import Mapping

from agentworld.domains.base import Axis
from agentworld.domains.failure import reports_failure
from agentworld.domains.terminal.comparison import is_same
from agentworld.domains.terminal.keys import is_refusal
from agentworld.domains.terminal.transcript import last_block


def verify(predicted: str, truth: str) -> Mapping[Axis, bool | None]:
    """The verdict for a predicted screen; none if the true screen is blank."""
    if not truth.strip():
        return {}
    axis: Axis = "errors" if is_failure(truth) else "consistency"
    return {axis: is_same(predicted, truth)}


def is_failure(screen: str) -> bool:
    """Whether the last command failed, by its words, because a screen shows no exit status."""
    return is_refusal(screen) or any(reports_failure(line) for line in last_block(screen))
