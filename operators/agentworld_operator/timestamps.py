"""Timestamps in the API server's form."""

from datetime import UTC, datetime


def now(timespec: str = "seconds") -> str:
    """As `2026-11-26T01:30:00Z`."""
    return to_text(datetime.now(UTC), timespec)


def to_text(time: datetime, timespec: str = "seconds") -> str:
    """A time with a time zone, in UTC."""
    return time.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
