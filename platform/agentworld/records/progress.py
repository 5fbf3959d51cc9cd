"""A callback for the progress of long work."""

from collections.abc import Callable
from functools import partial
from threading import Lock

OnProgress = Callable[[int, int], None]
"""Called often with the amounts done and total; it must be fast."""

_WHOLE = 1_000


def ignore_progress(done: int, total: int) -> None:
    """A callback that does nothing."""


class ProgressCounter:
    """Adds up progress from any number of threads."""

    def __init__(self, on_progress: OnProgress, total: int) -> None:
        self._on_progress = on_progress
        self._total = total
        self._done = 0
        self._one_at_a_time = Lock()

    def add(self, amount: int) -> None:
        """Adds an amount that is done."""
        with self._one_at_a_time:
            self._done += amount
            self._on_progress(self._done, self._total)


def concurrent_parts(on_progress: OnProgress, num: int) -> list[OnProgress]:
    """Callbacks for equal parts of a step's work that run concurrently, in threads."""
    shares, one_at_a_time = [0.0] * num, Lock()

    def report_part(number: int, done: int, total: int) -> None:
        with one_at_a_time:
            shares[number] = done / max(1, total)
            on_progress(round(sum(shares) / num * _WHOLE), _WHOLE)

    return [partial(report_part, number) for number in range(num)]


def sequential_parts(on_progress: OnProgress, num: int) -> list[OnProgress]:
    """Callbacks for equal parts of a step's work that run in their order."""
    return [share_of(on_progress, part / num, (part + 1) / num) for part in range(num)]


def share_of(on_progress: OnProgress, begin: float, end: float) -> OnProgress:
    """A callback for a part of a step's work, from one share of the whole to another."""

    def report_part(done: int, total: int) -> None:
        share = begin + (end - begin) * done / max(1, total)
        on_progress(round(share * _WHOLE), _WHOLE)

    return report_part
