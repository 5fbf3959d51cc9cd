"""The load client: N episodes at once over one wire, in a process of its own.

It prints one Round. It speaks through the half of `websockets` that does no I/O and has neither
a task nor a queue for an episode: a step costs it 10 to 20 us, so that it is the server that is
measured.
"""

import argparse
import asyncio
import gc
import time
from array import array
from typing import NamedTuple

import psutil
import uvloop

from agentworld.errors import SimulatorError
from agentworld.records.base import Record
from benchmarks.door import Door
from benchmarks.episode import close_all, open_all
from benchmarks.figures import percentile


class Round(Record):
    """One measurement of one server."""

    episodes: int
    steps: int
    """Answered within the time that counts; resets are not steps."""
    steps_per_second: float
    p50_ms: float
    p99_ms: float
    server_us: float
    """Processor time that the server took for a step, in all of its threads."""
    client_share: float
    """Of a core, that the load client itself was busy; near 1 it is the client that is measured."""


class Window:
    """Notes the steps that are answered between two points in time."""

    def __init__(self, begin: float, seconds: float) -> None:
        self.begin, self.end = begin, begin + seconds
        self.latencies = array("d")

    def note(self, asked: float, answered: float) -> bool:
        """Whether there is time for another step."""
        if answered >= self.end:
            return False
        if answered >= self.begin:
            self.latencies.append(answered - asked)
        return True

    def round(self, episodes: int, used: "Used") -> Round:
        ordered = sorted(self.latencies)
        if not ordered:
            raise SimulatorError("no step was answered in time; is the server alive?")
        return Round(
            episodes=episodes,
            steps=len(ordered),
            steps_per_second=len(ordered) / (self.end - self.begin),
            p50_ms=1e3 * percentile(ordered, 0.50),
            p99_ms=1e3 * percentile(ordered, 0.99),
            server_us=1e6 * used.server / len(ordered),
            client_share=used.client / (self.end - self.begin),
        )


class Used(NamedTuple):
    """Seconds of processor time."""

    server: float
    client: float


async def load(door: Door, episodes: int, warm_up: float, seconds: float) -> Round:
    """Opens the episodes, steps them all for a while, closes them."""
    opened = await open_all(door.url, episodes, door.wire)
    window = Window(time.perf_counter() + warm_up, seconds)
    used = asyncio.create_task(_used(door.pid, window))
    await asyncio.gather(*(episode.take_steps(window.note) for episode in opened))
    await close_all(opened)
    return window.round(episodes, await used)


async def _used(server: int, window: Window) -> Used:
    """What the two sides use while steps are counted."""
    await asyncio.sleep(window.begin - time.perf_counter())
    before = _used_until_now(server)
    await asyncio.sleep(window.end - time.perf_counter())
    after = _used_until_now(server)
    return Used(after.server - before.server, after.client - before.client)


def _used_until_now(server: int) -> Used:
    times = psutil.Process(server).cpu_times()
    return Used(times.user + times.system, time.process_time())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--wire", default="openenv")
    parser.add_argument("--server-pid", type=int, required=True)
    parser.add_argument("--episodes", type=int, required=True)
    parser.add_argument("--warm-up", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    given = parser.parse_args()
    # A collection in here would be read as the server's p99.
    gc.disable()
    door = Door(given.url, given.server_pid, given.wire)
    measured = uvloop.run(load(door, given.episodes, given.warm_up, given.seconds))
    print(measured.model_dump_json())


if __name__ == "__main__":
    main()
