"""A service among a thousand slow clients and a hundred rude ones, as its healthy clients see it.

`python -m benchmarks.storm --seconds 300`: 64 healthy episodes alone, then in the storm.
"""

import argparse
import asyncio
import gc
import json
import shutil
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psutil
import uvloop

from agentworld.steps.targets import Figure
from benchmarks.crowd import gathered
from benchmarks.door import Door
from benchmarks.doors import start_ours
from benchmarks.healthy_clients import Health, Pace, makers, stay_healthy
from benchmarks.machine import allow_many_files
from benchmarks.resident import Growth, Resident, growth, watch
from benchmarks.wire import Place

SECONDS = 300.0
ALONE_SECONDS = 60.0

_FOLDER = Path(__file__).parents[2] / ".bench/wires/storm"
_WARM_UP_SECONDS = 2.0
# Until every slow client is there, and the slowest of them were ended once.
_GATHERING_SECONDS = 35.0


class Size(NamedTuple):
    """How many clients there are."""

    healthy: int = 64
    slow: int = 1_000
    rude: int = 100


class Used(NamedTuple):
    """Seconds of processor time until now, or of each second."""

    service: float
    healthy: float
    """All healthy clients."""
    crowd: float
    """All others."""

    def since(self, before: "Used", seconds: float) -> "Used":
        """Of each second, which is the share of a core."""
        return Used(*((now - then) / seconds for now, then in zip(self, before, strict=True)))


class Storm(NamedTuple):
    """What was seen."""

    alone: Pace
    """Of the healthy clients before the storm."""
    among: Pace
    """And in it."""
    alone_shares: Used
    among_shares: Used
    """Of a core; where they use up the machine, latencies are the machine's."""
    healthy_errors: list[str]
    memory: Growth
    """Of the service, in the storm."""
    rounds: dict[str, int]
    """How often each kind of slow and of rude client came."""
    server_errors: int
    """Answers of 500 and more, to whomever."""
    log: list[str]
    """All that the service logged."""

    @property
    def p99_ratio(self) -> float:
        """Of healthy steps, over the same without a storm."""
        return self.among.p99_ms / self.alone.p99_ms

    @property
    def num_tracebacks(self) -> int:
        return sum(line.startswith("Traceback") for line in self.log)

    @property
    def figures(self) -> list[Figure]:
        """Those that have a bound."""
        errors, server = float(len(self.healthy_errors)), float(self.server_errors)
        return [
            Figure("storm.healthy_errors", errors, must=0.0, at_most=True),
            Figure("storm.server_errors", server, must=0.0, at_most=True),
            Figure("storm.tracebacks", float(self.num_tracebacks), must=0.0, at_most=True),
            Figure("storm.memory_ratio", self.memory.ratio, must=1.1, at_most=True),
            Figure("storm.p99_ratio", self.p99_ratio, must=2.0, at_most=True),
        ]

    def as_json(self) -> dict[str, object]:
        """The key `storm` of `.bench/wires.json`."""
        tuples = {name: getattr(self, name)._asdict() for name in _TUPLES}
        memory = {**self.memory._asdict(), "ratio": self.memory.ratio}
        return {
            **self._asdict(),
            **tuples,
            "p99_ratio": self.p99_ratio,
            "memory": memory,
            "tracebacks": self.num_tracebacks,
        }


_TUPLES = ("alone", "among", "alone_shares", "among_shares")


def measure_storm(
    folder: Path,
    seconds: float = SECONDS,
    alone_seconds: float = ALONE_SECONDS,
    size: Size = Size(),  # noqa: B008 - a tuple
) -> Storm:
    """Starts a service with an engine that answers at once; its stores are in the folder."""
    allow_many_files()  # the service inherits it
    with start_ours(folder) as door:
        seen = uvloop.run(_storm(door, seconds, alone_seconds, size))
    return seen._replace(log=(folder / "simulator.log").read_text().splitlines())


async def _storm(door: Door, seconds: float, alone_seconds: float, size: Size) -> Storm:
    health, samples = Health(), list[Resident]()
    gathering = min(_GATHERING_SECONDS, seconds / 2)
    healthy = islice(cycle(makers(door.url)), size.healthy)
    async with _running(stay_healthy(make, door.url, health) for make in healthy):
        await asyncio.sleep(_WARM_UP_SECONDS)
        alone, alone_shares = await _paced(health, [door.pid], alone_seconds)
        with gathered(_place(door), size.slow, size.rude, gathering) as crowd:
            await asyncio.sleep(gathering)
            async with _running([watch(door.pid, samples)]):
                among, among_shares = await _paced(health, [door.pid, crowd.pid], seconds)
    return Storm(
        alone,
        among,
        alone_shares,
        among_shares,
        health.errors,
        growth(samples),
        *crowd.seen,
        log=[],
    )


async def _paced(health: Health, pids: list[int], seconds: float) -> tuple[Pace, Used]:
    """How healthy clients fare for so long, and what the service and the crowd use meanwhile."""
    health.pace()
    before, begun = _used(pids), time.perf_counter()
    await asyncio.sleep(seconds)
    return health.pace(), _used(pids).since(before, time.perf_counter() - begun)


@asynccontextmanager
async def _running(work: Iterable[Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """All of it while the block runs."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for problem in ended:
        if isinstance(problem, Exception):
            raise problem


def _place(door: Door) -> Place:
    address = urlsplit(door.url)
    assert address.hostname is not None
    assert address.port is not None
    return Place(address.hostname, address.port, address.path)


def _used(pids: list[int]) -> Used:
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    service, crowd = [*(each.user + each.system for each in times), 0.0][:2]
    return Used(service, time.process_time(), crowd)


def main() -> int:
    """Exit status 1 where something that must hold does not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--alone-seconds", type=float, default=ALONE_SECONDS)
    given = parser.parse_args()
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _FOLDER.mkdir(parents=True)
    gc.freeze()
    storm = measure_storm(_FOLDER, given.seconds, given.alone_seconds)
    print(json.dumps(storm.as_json(), indent=2))
    return 0 if all(figure.holds for figure in storm.figures) else 1


if __name__ == "__main__":
    sys.exit(main())
