"""The load generator: N concurrent episodes over one protocol, in this process.

The server is a separate process, so that only it is measured; `client_share` is this process's
load.
"""

import asyncio
import gc
import random
import time
from array import array
from collections.abc import Callable, Mapping
from itertools import cycle
from typing import NamedTuple

import psutil
import uvloop

from agentworld.errors import SimulatorError
from benchmarks.figures import percentile
from benchmarks.players import Player, playing
from benchmarks.servers import Target

_ACTIONS = ("ls", "cat rimo.txt", "echo kolu > tane.txt", "cat tane.txt", "rm rimo.txt", "pwd")
_WARM_UP_SECONDS = 1.0


class Round(NamedTuple):
    """One measurement of one server."""

    episodes: int
    steps: int
    """Steps that were answered within the measured time; resets are not steps."""
    steps_per_second: float
    p50_ms: float
    p99_ms: float
    server_us: float
    """The server's processor time for a step, in all of its threads."""
    client_share: float
    """The load generator's share of a core; near 1, it is the bottleneck."""


class Latency(NamedTuple):
    """The response times of the steps in some period."""

    steps: int
    p50_ms: float
    p99_ms: float

    @classmethod
    def of(cls, seconds: "array[float]") -> "Latency":
        """Raises SimulatorError if there are none."""
        ordered = sorted(seconds)
        if not ordered:
            raise SimulatorError("no step was answered in time; is the server alive?")
        return cls(len(ordered), *(1e3 * percentile(ordered, share) for share in (0.50, 0.99)))


class Window:
    """Records the steps that are answered between two points in time."""

    def __init__(self, begin: float, seconds: float) -> None:
        self.begin, self.end = begin, begin + seconds
        self.latencies = array("d")

    def note(self, start: float, end: float) -> bool:
        """Returns whether there is time for another step."""
        if end >= self.end:
            return False
        if end >= self.begin:
            self.latencies.append(end - start)
        return True

    def round(self, episodes: int, usage: "Used") -> Round:
        latency, seconds = Latency.of(self.latencies), self.end - self.begin
        return Round(
            episodes,
            latency.steps,
            latency.steps / seconds,
            latency.p50_ms,
            latency.p99_ms,
            server_us=1e6 * usage.server / latency.steps,
            client_share=usage.client / seconds,
        )


class Used(NamedTuple):
    """Seconds of processor time."""

    server: float
    client: float


async def load(target: Target, episodes: int, warm_up: float, seconds: float) -> Round:
    """Begins the episodes, takes steps in all of them for a while, and closes them."""
    async with playing(target, episodes) as players:
        window = Window(time.perf_counter() + warm_up, seconds)
        usage = asyncio.create_task(_used(target.pid, window))
        share = episodes // len(players)

        def note(start: float, end: float) -> bool:
            return all(window.note(start, end) for _ in range(share))

        await asyncio.gather(*(play(player, note) for player in players))
    return window.round(episodes, await usage)


async def play(
    player: Player, note: Callable[[float, float], bool], pause_seconds: float = 0.0
) -> None:
    """Takes steps, with about such a pause before each, for as long as `note` returns true."""
    for action in cycle(_ACTIONS):
        if pause_seconds:
            await asyncio.sleep(random.uniform(0.5, 1.5) * pause_seconds)
        start = time.perf_counter()
        is_done = await player.step(action)
        if not note(start, time.perf_counter()):
            return
        if is_done:
            await player.begin()


async def _used(server: int, window: Window) -> Used:
    """The processor time of both sides while steps are counted."""
    await asyncio.sleep(window.begin - time.perf_counter())
    before = _used_until_now(server)
    await asyncio.sleep(window.end - time.perf_counter())
    after = _used_until_now(server)
    return Used(after.server - before.server, after.client - before.client)


def _used_until_now(server: int) -> Used:
    times = psutil.Process(server).cpu_times()
    return Used(times.user + times.system, time.process_time())


def measure(target: Target, episodes: int, seconds: float) -> Round:
    """One round."""
    # Garbage collection here would increase the measured p99.
    gc.collect()
    gc.disable()
    try:
        return uvloop.run(load(target, episodes, _WARM_UP_SECONDS, seconds))
    finally:
        gc.enable()


def take_turns(
    targets: Mapping[str, Target], episodes: int, *, rounds: int, seconds: float
) -> dict[str, list[Round]]:
    """Alternates between the servers (A B A B), so that the machine's noise affects all."""
    rounds_by_name: dict[str, list[Round]] = {name: [] for name in targets}
    for _ in range(rounds):
        for name, target in targets.items():
            rounds_by_name[name].append(measure(target, episodes, seconds))
    return rounds_by_name
