"""Why a resource is not in its desired state."""

from typing import NamedTuple


class Problem(NamedTuple):
    """A reason of one word for a condition, and a sentence."""

    reason: str
    message: str
