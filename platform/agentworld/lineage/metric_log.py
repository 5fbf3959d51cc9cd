"""Sends metrics to a tracking server in batches, from a background thread.

A training never waits for the server. While the server is down, the newest metrics are kept, and
sent when it responds.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from threading import Event, Lock, Thread
from typing import NamedTuple, Protocol, Self

from agentworld.errors import AgentworldError

_MOST_POINTS = 20_000
_SECONDS_BETWEEN_WRITES = 5.0
_MOST_SECONDS_BETWEEN_WRITES = 300.0
_SECONDS_TO_CLOSE = 10.0
_log = logging.getLogger(__name__)


class Point(NamedTuple):
    """One metric at one step."""

    name: str
    value: float
    milliseconds: int
    """Since the epoch."""
    step: int


class Writer(Protocol):
    """Writes the metrics of one training; raises AgentworldError on failure."""

    def write(self, points: Sequence[Point]) -> None:
        """Adds points."""
        ...

    def end(self, *, failed: bool) -> None:
        """Marks the training as ended."""
        ...


class MetricLog:
    """Writes while the block runs, and at its end for at most ten seconds."""

    def __init__(
        self, writer: Writer, seconds_between_writes: float = _SECONDS_BETWEEN_WRITES
    ) -> None:
        self._writer = writer
        self._failed = False
        self._has_written = False
        self._seconds = seconds_between_writes
        self._points: deque[Point] = deque(maxlen=_MOST_POINTS)
        self._lock = Lock()
        """Guards the points."""
        self._closing = Event()
        self._thread = Thread(target=self._run, name="metrics", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._failed = error is not None
        self._closing.set()
        self._thread.join(_SECONDS_TO_CLOSE)
        if self._thread.is_alive() or self._points:
            _log.warning("the last figures of the training were not logged")

    def add(self, step: int, figures: Mapping[str, float]) -> None:
        """Queues the metrics of a step; returns at once."""
        now = int(time.time() * 1_000)
        points = [Point(name, value, now, step) for name, value in figures.items()]
        with self._lock:
            self._points.extend(points)

    def _run(self) -> None:
        seconds = self._seconds
        while not self._closing.wait(seconds):
            longer = min(2 * seconds, _MOST_SECONDS_BETWEEN_WRITES)
            seconds = self._seconds if self._flush() else longer
        if self._flush() and self._has_written:
            self._attempt(lambda: self._writer.end(failed=self._failed))

    def _flush(self) -> bool:
        """Returns whether all queued points are written."""
        with self._lock:
            points = list(self._points)
            self._points.clear()
        if not points:
            return True
        if self._attempt(lambda: self._writer.write(points)):
            self._has_written = True
            return True
        with self._lock:
            self._points = deque([*points, *self._points], maxlen=_MOST_POINTS)
        return False

    def _attempt(self, work: Callable[[], None]) -> bool:
        try:
            work()
        except AgentworldError as error:
            _log.warning("figures of the training are not logged yet: %s", error)
            return False
        return True
