"""The new lines of a growing log, each once, by the timestamps that Kubernetes adds."""

from collections.abc import Iterator
from datetime import UTC, datetime

_Line = tuple[datetime, str]


class LogTail:
    """The position in one pod's log.

    Kubernetes returns a log from a whole second on, so lines of that second are repeated; lines
    with equal microseconds are distinguished by counting.
    """

    def __init__(self) -> None:
        self._last: datetime | None = None
        self._at_last = 0

    @property
    def query(self) -> list[tuple[str, str]]:
        """The query parameters of the next request."""
        since = self._last and self._last.astimezone(UTC).replace(microsecond=0, tzinfo=None)
        return [
            ("timestamps", "true"),
            *([("sinceTime", f"{since.isoformat()}Z")] if since else []),
        ]

    def unseen(self, text: str) -> list[str]:
        """The new lines without their timestamps; an incomplete line comes later."""
        lines = list(_split_times(text))
        fresh, num_repeats = [], self._at_last
        for time, message in lines:
            if time == self._last and num_repeats:
                num_repeats -= 1
            elif self._last is None or time >= self._last:
                fresh.append((time, message))
        if fresh:
            self._last = max(moment for moment, _ in fresh)
            self._at_last = sum(moment == self._last for moment, _ in lines)
        return [message for _, message in fresh]


def _split_times(text: str) -> Iterator[_Line]:
    *lines, _unfinished = text.split("\n")
    time = datetime.min.replace(tzinfo=UTC)
    for line in lines:
        stamp, _, message = line.partition(" ")
        try:
            time = datetime.fromisoformat(stamp)
        except ValueError:  # the rest of a line that was split because of its length
            message = line
        yield time, message
