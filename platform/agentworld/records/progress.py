"""How long work tells how far it is: a function that the caller hands down."""

from collections.abc import Callable

Tick = Callable[[int, int], None]
"""Called with what is done and what there is to do, often; it must be cheap to call."""

_WHOLE = 1_000


def no_tick(done: int, total: int) -> None:
    """For callers who do not look."""


def share_of(tick: Tick, begin: float, end: float) -> Tick:
    """A tick for a part of a step's work, which begins and ends at these shares of the whole."""

    def tick_part(done: int, total: int) -> None:
        share = begin + (end - begin) * done / max(1, total)
        tick(round(share * _WHOLE), _WHOLE)

    return tick_part
