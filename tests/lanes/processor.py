"""The processor time of this process and of all processes under it, from /proc."""

import os
from collections.abc import Callable
from contextlib import suppress
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

_TICKS = os.sysconf("SC_CLK_TCK")
# In /proc/PID/stat after the name: utime, stime, cutime, cstime.
_TIMES = slice(11, 15)


class Meter:
    """Splits processor time into laps."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._last = seconds()

    def lap(self) -> float:
        """The seconds since the previous lap.

        Time of a process whose parent ended first is lost when it ends, so a lap can lack it.
        """
        now = self._seconds()
        seconds, self._last = max(now - self._last, 0.0), now
        return seconds


def tree_seconds() -> float:
    """The time of this process, of its ended children that it waited for, and of all its running
    descendants.

    With ended children only, the test that ends a process would be charged for its whole life.
    Called three times in each test, and therefore without Path, which takes four times as long.
    """
    own_seconds = sum((*getrusage(RUSAGE_SELF)[:2], *getrusage(RUSAGE_CHILDREN)[:2]))
    return own_seconds + (_running_children("self") if _has_children() else 0.0)


def _has_children() -> bool:
    """Checked first, because most tests have none and a process may have many threads."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _running_children(pid: int | str) -> float:
    seconds = 0.0
    with suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            for child in _read(f"/proc/{pid}/task/{thread}/children").split():
                seconds += _seconds_of(int(child)) + _running_children(int(child))
    return seconds


def _seconds_of(pid: int) -> float:
    with suppress(FileNotFoundError, ProcessLookupError):
        times = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[_TIMES]
        return sum(map(int, times)) / _TICKS
    return 0.0


def _read(file: str) -> bytes:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)
