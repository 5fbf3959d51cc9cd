"""Limits repeated log records to one a minute."""

import logging
import time
from collections.abc import Callable, Collection


class RateLimitedLog(logging.Filter):
    """Lets the first of equal records pass, and then one every `seconds`, with the number of those
    that were dropped. Records are equal if they come from one place; for an exception, the place
    where it was raised. `ignored` records never pass.
    """

    def __init__(
        self,
        ignored: Collection[str] = (),
        seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._ignored = frozenset(ignored)
        self._seconds = seconds
        self._clock = clock
        self._last_pass_times: dict[object, float] = {}
        self._num_skipped: dict[object, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.msg in self._ignored:
            return False
        origin, now = _origin(record), self._clock()
        if now - self._last_pass_times.get(origin, -self._seconds) < self._seconds:
            self._num_skipped[origin] = self._num_skipped.get(origin, 0) + 1
            return False
        self._last_pass_times[origin] = now
        if num_skipped := self._num_skipped.pop(origin, 0):
            record.msg = f"{record.msg} (and {num_skipped:,} more since the last of these)"
        return True


def _origin(record: logging.LogRecord) -> object:
    trace = record.exc_info[2] if record.exc_info else None
    if trace is None:
        return record.name, record.pathname, record.lineno
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code, trace.tb_lineno
