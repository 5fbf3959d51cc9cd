"""Why something is not as it was wanted."""

from typing import NamedTuple


class Problem(NamedTuple):
    """In one word, which a condition has as its reason, and in a sentence."""

    reason: str
    message: str
