"""A process's resident memory over time, and whether it grows."""

import asyncio
import time
from collections.abc import Sequence
from statistics import linear_regression, mean
from typing import NamedTuple

import psutil

_EVERY_SECONDS = 0.25
_MIB = 2**20


class Resident(NamedTuple):
    """One sample."""

    seconds: float
    mib: float


class Growth(NamedTuple):
    """What samples say."""

    first_third_mib: float
    last_third_mib: float
    highest_mib: float
    mib_per_hour: float
    """The slope of a straight line through them."""

    @property
    def ratio(self) -> float:
        """The last third over the first one; 1 is flat."""
        return self.last_third_mib / self.first_third_mib


async def watch(pid: int, samples: list[Resident]) -> None:
    """Adds samples until it is cancelled."""
    process, begun = psutil.Process(pid), time.perf_counter()
    while True:
        rss = process.memory_info().rss / _MIB
        samples.append(Resident(time.perf_counter() - begun, rss))
        await asyncio.sleep(_EVERY_SECONDS)


def growth(samples: Sequence[Resident]) -> Growth:
    """Of three samples or more."""
    third = len(samples) // 3
    slope, _ = linear_regression(
        [sample.seconds for sample in samples], [sample.mib for sample in samples]
    )
    return Growth(
        mean(sample.mib for sample in samples[:third]),
        mean(sample.mib for sample in samples[-third:]),
        max(sample.mib for sample in samples),
        3600 * slope,
    )
