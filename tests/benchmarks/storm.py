"""A service among slow and rude clients, as its healthy clients see it."""

import asyncio
import time
from array import array
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import uvloop

from agentworld.errors import SimulatorError
from benchmarks.crowd import Crowd, crowd_of
from benchmarks.load import Latency, play
from benchmarks.machine import allow_many_files
from benchmarks.memory import Growth, Resident, growth, watch
from benchmarks.players import Player, playing
from benchmarks.servers import Target, start_ours

SECONDS = 300.0
ALONE_SECONDS = 60.0

_PROTOCOLS = ("openenv", "http")
_WARM_UP_SECONDS = 2.0
# Until every slow client is there, and the slowest of them were ended once.
_GATHERING_SECONDS = 35.0
# As fast as they can, healthy clients would be the load themselves.
_STEP_PAUSE_SECONDS = 0.2


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

    alone: Latency
    """Of the healthy clients before the storm."""
    among: Latency
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

    def as_json(self) -> dict[str, object]:
        """The key `storm` of `.bench/protocols.json`."""
        return {
            **self._asdict(),
            "alone": self.alone._asdict(),
            "among": self.among._asdict(),
            "alone_shares": self.alone_shares._asdict(),
            "among_shares": self.among_shares._asdict(),
            "p99_ratio": self.p99_ratio,
            "memory": {**self.memory._asdict(), "ratio": self.memory.ratio},
            "tracebacks": self.num_tracebacks,
        }


def measure_storm(
    folder: Path,
    seconds: float = SECONDS,
    alone_seconds: float = ALONE_SECONDS,
    size: Size = Size(),  # noqa: B008 - a tuple
) -> Storm:
    """Starts a service with an engine that answers at once; its stores are in the folder."""
    allow_many_files()  # the service inherits it
    gathering = min(_GATHERING_SECONDS, seconds / 2)
    with (
        start_ours(folder) as target,
        crowd_of(target.url, size.slow, size.rude, gathering) as crowd,
    ):
        seen = uvloop.run(_storm(target, size.healthy, crowd, alone_seconds, gathering, seconds))
    return seen._replace(log=(folder / "simulator.log").read_text().splitlines())


class Health:
    """What healthy clients see: how long their steps took, and every error."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self._seconds = array("d")

    async def stay_healthy(self, player: Player) -> None:
        """Steps at a steady pace until it is cancelled."""
        try:
            await play(player, self._note, _STEP_PAUSE_SECONDS)
        except (OSError, SimulatorError) as error:
            self.errors.append(f"{type(error).__name__}: {error}")

    async def latency(self, pids: list[int], seconds: float) -> tuple[Latency, Used]:
        """Of their steps in so many seconds, and what the service and the crowd use meanwhile."""
        self._seconds = array("d")
        before, begun = _used(pids), time.perf_counter()
        await asyncio.sleep(seconds)
        used = _used(pids).since(before, time.perf_counter() - begun)
        return Latency.of(self._seconds), used

    def _note(self, asked: float, answered: float) -> bool:
        self._seconds.append(answered - asked)
        return True


async def _storm(
    target: Target,
    num_healthy: int,
    crowd: Crowd,
    alone_seconds: float,
    gathering_seconds: float,
    seconds: float,
) -> Storm:
    health, samples = Health(), list[Resident]()
    async with AsyncExitStack() as stack:
        for protocol in _PROTOCOLS:
            healthy = playing(target._replace(protocol=protocol), num_healthy // len(_PROTOCOLS))
            players = await stack.enter_async_context(healthy)
            stepping = _running(health.stay_healthy(player) for player in players)
            await stack.enter_async_context(stepping)
        await asyncio.sleep(_WARM_UP_SECONDS)
        alone, alone_shares = await health.latency([target.pid], alone_seconds)
        crowd.come()
        await asyncio.sleep(gathering_seconds)
        async with _running([watch(target.pid, samples)]):
            among, among_shares = await health.latency([target.pid, crowd.pid], seconds)
        seen = await asyncio.to_thread(crowd.leave)
    return Storm(
        *(alone, among, alone_shares, among_shares),
        health.errors,
        growth(samples),
        *seen,
        log=[],
    )


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


def _used(pids: list[int]) -> Used:
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    service, crowd = [*(each.user + each.system for each in times), 0.0][:2]
    return Used(service, time.process_time(), crowd)
