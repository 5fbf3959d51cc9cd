"""The growth of the service's memory with open episodes, and over time."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import linear_regression, mean
from typing import NamedTuple

import psutil
import uvloop

from benchmarks.players import Player, playing
from benchmarks.servers import start_ours

TURNS = 12
FEW, MANY = 1_000, 10_000
_SETTLE_SECONDS = 2.0
_EVERY_SECONDS = 0.25
# Enough that everything that is loaded or created once is included.
_WARM_UP = 64
_MIB = 2**20


class EpisodeGrowth(NamedTuple):
    """The service's resident memory above that without episodes, for each open one."""

    few_kib: float
    many_kib: float

    @property
    def episode_kib(self) -> float:
        """The larger of the two figures."""
        return max(self)


def measure_growth(folder: Path, few: int = FEW, many: int = MANY) -> EpisodeGrowth:
    """Opens some episodes, then more of them; each takes its turns and stays open."""
    with start_ours(folder) as target:

        async def grow() -> EpisodeGrowth:
            async with playing(target, _WARM_UP) as players:
                await _take_turns(players)
            before = await _settled_kib(target.pid)
            async with playing(target, few) as few_players:
                await _take_turns(few_players)
                few_kib = await _settled_kib(target.pid) - before
                async with playing(target, many - few) as more_players:
                    await _take_turns(more_players)
                    many_kib = await _settled_kib(target.pid) - before
            return EpisodeGrowth(few_kib / few, many_kib / many)

        return uvloop.run(grow())


async def _take_turns(players: Sequence[Player]) -> None:
    async def play(player: Player) -> None:
        for turn in range(TURNS):
            await player.step(f"cat {turn}.txt")

    await asyncio.gather(*(play(player) for player in players))


async def _settled_kib(pid: int | None) -> float:
    await asyncio.sleep(_SETTLE_SECONDS)
    service = psutil.Process(pid)
    processes = [service, *service.children(recursive=True)]
    return sum(process.memory_info().rss for process in processes) / 1024


class Resident(NamedTuple):
    """One sample of a process's resident memory."""

    seconds: float
    mib: float


class Growth(NamedTuple):
    """The statistics of the samples."""

    first_third_mib: float
    last_third_mib: float
    highest_mib: float
    mib_per_hour: float
    """The slope of a fitted straight line."""

    @property
    def ratio(self) -> float:
        """The last third over the first one; 1 is constant."""
        return self.last_third_mib / self.first_third_mib


async def watch(pid: int | None, samples: list[Resident]) -> None:
    """Adds samples until it is canceled."""
    process, start = psutil.Process(pid), time.perf_counter()
    while True:
        rss = process.memory_info().rss / _MIB
        samples.append(Resident(time.perf_counter() - start, rss))
        await asyncio.sleep(_EVERY_SECONDS)


def growth(samples: Sequence[Resident]) -> Growth:
    """The growth of at least three samples."""
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
