"""The lines of a log that grows, each told once, by the times that Kubernetes gives them."""

from collections.abc import Iterator
from datetime import UTC, datetime

_Line = tuple[datetime, str]


class LogTail:
    """How much of one pod's log was seen.

    A log is asked for from a whole second on, so that the lines of that second come again; those
    of the very same microsecond are told apart by their number.
    """

    def __init__(self) -> None:
        self._last: datetime | None = None
        self._at_last = 0

    @property
    def query(self) -> list[tuple[str, str]]:
        """What to ask for."""
        since = self._last and self._last.astimezone(UTC).replace(microsecond=0, tzinfo=None)
        return [
            ("timestamps", "true"),
            *([("sinceTime", f"{since.isoformat()}Z")] if since else []),
        ]

    def unseen(self, text: str) -> list[str]:
        """The lines that were not seen, without their times; an unfinished one comes later."""
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
        except ValueError:  # the rest of a line that was too long for one
            message = line
        yield time, message
