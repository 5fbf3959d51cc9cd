"""The rule verifier of MCP: errors must be errors, and every predictable value must be right.

The form of JSON does not count, and neither do times, identifiers and temporary folders. Everything
else counts: each key and value, the order of lists, each line. The verdict belongs to the axis
`errors` if the call failed, otherwise to `consistency`.
"""

from collections.abc import Mapping

from agentworld.domains.base import Axis
from agentworld.domains.mcp.comparison import canonical, mask_volatile
from agentworld.domains.mcp.observation import is_failure
from agentworld.domains.volatile import is_equal_masked


def verify(predicted: str, truth: str) -> Mapping[Axis, bool | None]:
    """The verdict for a prediction; none if the true observation is blank."""
    if not truth.strip():
        return {}
    axis: Axis = "errors" if is_failure(truth) else "consistency"
    return {axis: is_same(predicted, truth)}


def is_same(one: str, other: str) -> bool:
    """Whether two observations are equal, apart from volatile parts."""
    return one == other or is_equal_masked(canonical(one), canonical(other), mask_volatile)
