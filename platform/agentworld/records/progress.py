"""How long work tells how far it is: a function that the caller hands down."""

from collections.abc import Callable

Tick = Callable[[int, int], None]
"""Called with what is done and what there is to do, often; it must be cheap to call."""


def no_tick(done: int, total: int) -> None:
    """For callers who do not look."""
