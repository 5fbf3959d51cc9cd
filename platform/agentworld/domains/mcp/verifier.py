"""The rule verifier of MCP: errors must be errors, and every predictable value must be right.

The form of JSON does not count, and neither do times, identifiers and temporary folders. Everything
else counts: each key and value, the order of lists, each line. The verdict belongs to the axis
`errors` if the call failed, otherwise to `consistency`.
"""

from collections.abc import Mapping

from agentworld.domains.base import Axis
from agentworld.domains.mcp.comparison import is_same
from agentworld.domains.mcp.observation import is_failure


def verify(predicted: str, truth: str) -> Mapping[Axis, bool | None]:
    """The verdict for a prediction; none if the true observation is blank."""
    if not truth.strip():
        return {}
    axis: Axis = "errors" if is_failure(truth) else "consistency"
    return {axis: is_same(predicted, truth)}
