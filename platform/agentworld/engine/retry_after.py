"""The HTTP header Retry-After."""

import math
import time
from email.utils import parsedate_to_datetime

_LONGEST_SECONDS = 60.0  # a client that retries too early is refused again


def retry_after_seconds(value: str | None) -> float | None:
    """Seconds until a retry, at most a minute, from a header with seconds or a date; null for any
    other value.
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
