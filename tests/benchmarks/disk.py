"""The disk's own time for a durable write, a lower bound for a service."""

import os
import time
from pathlib import Path

from benchmarks.figures import percentile

_NUM_WRITES = 200
_STEP = bytes(4_096)
"""A page, the minimum that SQLite writes for a step."""


def fsync_p50_ms(folder: Path) -> float:
    """The median time of an append with fdatasync, as SQLite commits."""
    folder.mkdir(parents=True, exist_ok=True)
    path, durations = folder / "fsync", []
    with path.open("wb", buffering=0) as file:
        for _ in range(_NUM_WRITES):
            start = time.perf_counter()
            file.write(_STEP)
            os.fdatasync(file.fileno())
            durations.append(1e3 * (time.perf_counter() - start))
    path.unlink()
    return percentile(sorted(durations), 0.5)
