"""The processor time of this process and of all processes under it, from /proc."""

import os
from contextlib import suppress

_TICKS = os.sysconf("SC_CLK_TCK")
# In /proc/PID/stat after the name: utime, stime, cutime, cstime.
_TIMES = slice(11, 15)


class Meter:
    """Splits processor time into laps."""

    def __init__(self) -> None:
        self._last = tree_seconds()

    def lap(self) -> float:
        """Seconds since the lap before.

        Time of a process whose parent ended first is lost when it ends, so a lap can lack it.
        """
        now = tree_seconds()
        seconds, self._last = max(now - self._last, 0.0), now
        return seconds


def tree_seconds(pid: int | str = "self") -> float:
    """Of a process, of its ended children that it waited for, and of all that run under it.

    Three times in each test: hence no Path, which would take four times as long.
    """
    process = f"/proc/{pid}"
    seconds = 0.0
    with suppress(FileNotFoundError, ProcessLookupError):
        times = _read(f"{process}/stat").rpartition(b")")[2].split()[_TIMES]
        seconds += sum(map(int, times)) / _TICKS
        for thread in os.listdir(f"{process}/task"):
            for child in _read(f"{process}/task/{thread}/children").split():
                seconds += tree_seconds(int(child))
    return seconds


def _read(file: str) -> bytes:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)
