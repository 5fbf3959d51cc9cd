"""How much the service's memory grows with the episodes that are open."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from agentworld.errors import SimulatorError
from benchmarks.door import Door
from benchmarks.doors import start_ours

TURNS = 12
FEW, MANY = 1_000, 10_000
_SETTLE_SECONDS = 2.0
# So many that whatever is loaded or made once, for the first of them, is there.
_WARM_UP = 64


class Growth(NamedTuple):
    """The resident memory of the service above that without episodes, for each open one."""

    few_kib: float
    many_kib: float

    @property
    def episode_kib(self) -> float:
        """The larger of the two: neither the first nor the last episodes cost more."""
        return max(self)


def measure_growth(folder: Path, few: int = FEW, many: int = MANY) -> Growth:
    """Opens some episodes, then more of them."""
    with start_ours(folder) as door:
        with holding(door, _WARM_UP):
            pass
        before = _resident_kib(door)
        with holding(door, few):
            few_kib = (_resident_kib(door) - before) / few
            with holding(door, many - few):
                many_kib = (_resident_kib(door) - before) / many
    return Growth(few_kib, many_kib)


@contextmanager
def holding(door: Door, num_episodes: int) -> Iterator[None]:
    """So many episodes with their turns taken are open while the block runs."""
    how = f"--episodes {num_episodes} --turns {TURNS}"
    command = [sys.executable, "-m", "benchmarks.hold", door.url, *how.split()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        if client.stdout.readline() != b"held\n":
            raise SimulatorError(f"{num_episodes} episodes could not be held open; see above")
        yield
        client.communicate()


def _resident_kib(door: Door) -> float:
    time.sleep(_SETTLE_SECONDS)
    service = psutil.Process(door.pid)
    processes = [service, *service.children(recursive=True)]
    return sum(process.memory_info().rss for process in processes) / 1024
