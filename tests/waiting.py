"""What a test waits for, and no longer than it has to."""

import time
from collections.abc import Callable


def wait_for(holds: Callable[[], object], seconds: float = 30.0) -> None:
    """Returns as soon as this holds; fails where it does not in so many seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
