"""The Retry-After of HTTP: how long a server asks to be left alone."""

import math
import time
from email.utils import parsedate_to_datetime

_LONGEST_SECONDS = 60.0  # who comes back too early is told again


def retry_after_seconds(value: str | None) -> float | None:
    """Seconds from now, a minute at most, of a header that gives them or a date; null where it
    gives neither.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = _seconds_until(value)
    return min(max(0.0, seconds), _LONGEST_SECONDS) if math.isfinite(seconds) else None


def _seconds_until(date: str) -> float:
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, OverflowError):
        return math.nan
