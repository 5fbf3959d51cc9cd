"""The periods in which a process did not run: it was stopped, or the machine was busy."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from campaigns.harness.journal import Journal, read

_EVERY_SECONDS = 0.1
_LATE_SECONDS = 0.3


class Stall(NamedTuple):
    """On the machine's monotonic clock."""

    process: str
    since: float
    until: float


def watch_stalls(
    process: str,
    journal: Path,
    stop_event: threading.Event,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """A thread records each late wake-up, until the event is set."""

    def watch() -> None:
        lines, last_wakeup = Journal(journal), clock()
        while not stop_event.wait(_EVERY_SECONDS):
            now = clock()
            if now - last_wakeup > _EVERY_SECONDS + _LATE_SECONDS:
                lines.write(process=process, since=last_wakeup, until=now)
            last_wakeup = now

    threading.Thread(target=watch, daemon=True).start()


def read_stalls(journal: Path) -> list[Stall]:
    """Reads the stalls in order."""
    stalls = [Stall(*(line[name] for name in Stall._fields)) for line in read(journal)]
    return sorted(stalls, key=lambda stall: stall.since)
