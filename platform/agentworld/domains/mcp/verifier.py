"""The rule verifier of MCP: an error is an error, and every value that can be known is right.

How JSON is written does not count, nor do times, identifiers and folders of one run. All else
counts: each key and value, the order of lists, each line. The verdict is one of an error where the
call failed, and else of what follows from the history.
"""

from collections.abc import Mapping

from agentworld.domains.base import Axis
from agentworld.domains.mcp.comparison import canonical, mask_volatile
from agentworld.domains.mcp.observation import is_failure


def verify(predicted: str, truth: str) -> Mapping[Axis, bool | None]:
    """No verdict where the true observation is blank: there is nothing to be right about."""
    if not truth.strip():
        return {}
    axis: Axis = "errors" if is_failure(truth) else "consistency"
    return {axis: is_same(predicted, truth)}


def is_same(one: str, other: str) -> bool:
    """Whether two observations are equal, apart from volatile parts."""
    return mask_volatile(canonical(one)) == mask_volatile(canonical(other))
