"""Waits for conditions in tests, without needless delay."""

import threading
import time
from collections.abc import Callable
from queue import Queue

DEADLINE = 300.0
"""Seconds. Only a test that fails waits so long, and a machine may do much else in that time."""
JOB_DEADLINE = 3600.0
"""Seconds, for a whole job: next to the other parts of `make flake`, a demo takes 15 minutes."""


def wait_for(condition: Callable[[], object], seconds: float = DEADLINE) -> None:
    """Returns soon after a condition holds; fails if it does not hold within these seconds.

    The pauses between the checks grow, because the awaited work needs the processor too.
    """
    start = time.monotonic()
    while not condition():
        elapsed = time.monotonic() - start
        assert elapsed < seconds
        time.sleep(min(0.001 + elapsed / 10, 0.25))


def wait_until_unchanged(read: Callable[[], object], seconds: float) -> None:
    """Returns when the value was constant for that long; fails if it keeps changing."""

    def is_unchanged() -> bool:
        before = read()
        time.sleep(seconds)
        return read() == before

    wait_for(is_unchanged)


def outcome(work: Callable[[], object], seconds: float = DEADLINE) -> object:
    """The result or the exception of the work; fails if it does not end in time."""
    results: Queue[object] = Queue()

    def run() -> None:
        try:
            results.put(work())
        except Exception as error:  # noqa: BLE001 - the test looks at it
            results.put(error)

    threading.Thread(target=run, daemon=True).start()
    return results.get(timeout=seconds)
