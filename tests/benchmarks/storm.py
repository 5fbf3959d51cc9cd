"""The latency of healthy clients while a service has slow and hostile ones."""

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
# Until every slow client is connected, and the slowest of them were disconnected once.
_GATHERING_SECONDS = 35.0
# At full speed, healthy clients would be the load themselves.
_STEP_PAUSE_SECONDS = 0.2


class Size(NamedTuple):
    """The numbers of clients."""

    healthy: int = 64
    slow: int = 1_000
    rude: int = 100


class Used(NamedTuple):
    """Total seconds of processor time, or seconds per second."""

    service: float
    healthy: float
    """All healthy clients."""
    crowd: float
    """All others."""

    def since(self, before: "Used", seconds: float) -> "Used":
        """Per second, which is the share of a core."""
        return Used(*((now - earlier) / seconds for now, earlier in zip(self, before, strict=True)))


class Storm(NamedTuple):
    """The measurements."""

    alone: Latency
    """Of the healthy clients before the storm."""
    among: Latency
    """During the storm."""
    alone_shares: Used
    among_shares: Used
    """Shares of a core; if they use up the machine, latencies are the machine's."""
    healthy_errors: list[str]
    memory: Growth
    """Of the service, during the storm."""
    rounds: dict[str, int]
    """The connections of each kind of slow and of rude client."""
    server_errors: int
    """Responses of 500 and more, to any client."""
    log: list[str]
    """The service's log."""

    @property
    def p99_ratio(self) -> float:
        """Of healthy steps, relative to those without a storm."""
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
    """Starts a service with an engine that responds at once; its stores are in the folder."""
    allow_many_files()  # inherited by the service
    gathering = min(_GATHERING_SECONDS, seconds / 2)
    with (
        start_ours(folder) as target,
        crowd_of(target.url, size.slow, size.rude, gathering) as crowd,
    ):
        result = uvloop.run(_storm(target, size.healthy, crowd, alone_seconds, gathering, seconds))
    return result._replace(log=(folder / "simulator.log").read_text().splitlines())


class Health:
    """The step times and errors of healthy clients."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self._seconds = array("d")

    async def stay_healthy(self, player: Player) -> None:
        """Takes steps at a steady rate until it is canceled."""
        try:
            await play(player, self._note, _STEP_PAUSE_SECONDS)
        except (OSError, SimulatorError) as error:
            self.errors.append(f"{type(error).__name__}: {error}")

    async def latency(self, pids: list[int], seconds: float) -> tuple[Latency, Used]:
        """The latency of their steps in a period, and the processor time of the service and the
        crowd.
        """
        self._seconds = array("d")
        before, start = _used(pids), time.perf_counter()
        await asyncio.sleep(seconds)
        usage = _used(pids).since(before, time.perf_counter() - start)
        return Latency.of(self._seconds), usage

    def _note(self, start: float, end: float) -> bool:
        self._seconds.append(end - start)
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
            player_context = playing(
                target._replace(protocol=protocol), num_healthy // len(_PROTOCOLS)
            )
            players = await stack.enter_async_context(player_context)
            step_tasks = _running(health.stay_healthy(player) for player in players)
            await stack.enter_async_context(step_tasks)
        await asyncio.sleep(_WARM_UP_SECONDS)
        latency_alone, alone_shares = await health.latency([target.pid], alone_seconds)
        crowd.come()
        await asyncio.sleep(gathering_seconds)
        async with _running([watch(target.pid, samples)]):
            latency_during, among_shares = await health.latency([target.pid, crowd.pid], seconds)
        observations = await asyncio.to_thread(crowd.leave)
    return Storm(
        *(latency_alone, latency_during, alone_shares, among_shares),
        health.errors,
        growth(samples),
        *observations,
        log=[],
    )


@asynccontextmanager
async def _running(work: Iterable[Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Runs the work while the block runs."""
    tasks = [asyncio.create_task(item) for item in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for problem in results:
        if isinstance(problem, Exception):
            raise problem


def _used(pids: list[int]) -> Used:
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    service, crowd = [*(item.user + item.system for item in times), 0.0][:2]
    return Used(service, time.process_time(), crowd)
