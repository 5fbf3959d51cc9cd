"""How long work tells how far it is: a function that the caller hands down."""

from collections.abc import Callable
from functools import partial
from threading import Lock

Tick = Callable[[int, int], None]
"""Called with what is done and what there is to do, often; it must be cheap to call."""

_WHOLE = 1_000


def no_tick(done: int, total: int) -> None:
    """For callers who do not look."""


class Count:
    """Adds up for a tick what is done in pieces, by any number of threads."""

    def __init__(self, tick: Tick, total: int) -> None:
        self._tick = tick
        self._total = total
        self._done = 0
        self._one_at_a_time = Lock()

    def add(self, amount: int) -> None:
        """So much more is done."""
        with self._one_at_a_time:
            self._done += amount
            self._tick(self._done, self._total)


def side_by_side(tick: Tick, num: int) -> list[Tick]:
    """Ticks for equal parts of a step's work that go on at the same time, in threads."""
    shares, one_at_a_time = [0.0] * num, Lock()

    def tick_part(number: int, done: int, total: int) -> None:
        with one_at_a_time:
            shares[number] = done / max(1, total)
            tick(round(sum(shares) / num * _WHOLE), _WHOLE)

    return [partial(tick_part, number) for number in range(num)]


def one_after_another(tick: Tick, num: int) -> list[Tick]:
    """Ticks for equal parts of a step's work, in their order."""
    return [share_of(tick, part / num, (part + 1) / num) for part in range(num)]


def share_of(tick: Tick, begin: float, end: float) -> Tick:
    """A tick for a part of a step's work, which begins and ends at these shares of the whole."""

    def tick_part(done: int, total: int) -> None:
        share = begin + (end - begin) * done / max(1, total)
        tick(round(share * _WHOLE), _WHOLE)

    return tick_part
