"""What a test waits for, and no longer than it has to."""

import threading
import time
from collections.abc import Callable
from queue import Queue


def wait_for(holds: Callable[[], object], seconds: float = 60.0) -> None:
    """Returns soon after this holds; fails where it does not in so many seconds.

    It asks less often the longer it waits: what is waited for needs the processor too.
    """
    began = time.monotonic()
    while not holds():
        waited = time.monotonic() - began
        assert waited < seconds
        time.sleep(min(0.001 + waited / 10, 0.25))


def wait_until_unchanged(read: Callable[[], object], seconds: float) -> None:
    """Returns when this was the same for so long; fails where something goes on changing it."""

    def is_unchanged() -> bool:
        before = read()
        time.sleep(seconds)
        return read() == before

    wait_for(is_unchanged)


def outcome(work: Callable[[], object], seconds: float = 60.0) -> object:
    """What work returns or raises; fails where it does neither in so many seconds."""
    ended: Queue[object] = Queue()

    def run() -> None:
        try:
            ended.put(work())
        except Exception as error:  # noqa: BLE001 - the test looks at it
            ended.put(error)

    threading.Thread(target=run, daemon=True).start()
    return ended.get(timeout=seconds)
