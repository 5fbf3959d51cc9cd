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
        lines = list(_timed(text))
        fresh, num_repeats = [], self._at_last
        for at, message in lines:
            if at == self._last and num_repeats:
                num_repeats -= 1
            elif self._last is None or at >= self._last:
                fresh.append((at, message))
        if fresh:
            self._last = max(at for at, _ in fresh)
            self._at_last = sum(at == self._last for at, _ in lines)
        return [message for _, message in fresh]


def _timed(text: str) -> Iterator[_Line]:
    *lines, _unfinished = text.split("\n")
    at = datetime.min.replace(tzinfo=UTC)
    for line in lines:
        stamp, _, message = line.partition(" ")
        try:
            at = datetime.fromisoformat(stamp)
        except ValueError:  # the rest of a line that was too long for one
            message = line
        yield at, message
