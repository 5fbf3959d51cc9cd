"""Waits for conditions in tests, without needless delay."""

import threading
import time
from collections.abc import Callable
from queue import Queue

DEADLINE = 300.0
"""Seconds. Only a test that fails waits so long, and a machine may do much else meanwhile."""


def wait_for(holds: Callable[[], object], seconds: float = DEADLINE) -> None:
    """Returns soon after this holds; fails where it does not in so many seconds.

    It asks less often the longer it waits: what is waited for needs the processor too.
    """
    began = time.monotonic()
    while not holds():
        waited = time.monotonic() - began
        assert waited < seconds
        time.sleep(min(0.001 + waited / 10, 0.25))


def wait_until_unchanged(read: Callable[[], object], seconds: float) -> None:
    """Returns when the value was constant for that long; fails if it keeps changing."""

    def is_unchanged() -> bool:
        before = read()
        time.sleep(seconds)
        return read() == before

    wait_for(is_unchanged)


def outcome(work: Callable[[], object], seconds: float = DEADLINE) -> object:
    """The result or the exception of the work; fails if it does not end in time."""
    ended: Queue[object] = Queue()

    def run() -> None:
        try:
            ended.put(work())
        except Exception as error:  # noqa: BLE001 - the test looks at it
            ended.put(error)

    threading.Thread(target=run, daemon=True).start()
    return ended.get(timeout=seconds)
