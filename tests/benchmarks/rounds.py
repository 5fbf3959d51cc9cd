"""Rounds of load on several servers in turn (A B A B), so that the machine's noise hits all."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.door import Door
from benchmarks.figures import Spread, spread
from benchmarks.load import Round

_WARM_UP_SECONDS = 1.0


class Summary(NamedTuple):
    """What is said of one server at one number of episodes: medians over its rounds."""

    steps_per_second: float
    steps_per_second_interval: tuple[float, float]
    p50_ms: float
    p99_ms: float
    server_us: float
    client_share: float
    """The largest."""


def take_turns(
    doors: Mapping[str, Door], episodes: int, *, rounds: int, seconds: float
) -> dict[str, list[Round]]:
    """The rounds of each server, by its name, in the order in which they were taken."""
    taken: dict[str, list[Round]] = {name: [] for name in doors}
    for _ in range(rounds):
        for name, door in doors.items():
            taken[name].append(measure(door, episodes, seconds))
    return taken


def measure(door: Door, episodes: int, seconds: float) -> Round:
    """One round; the load client is a process of its own."""
    how = f"--episodes {episodes} --seconds {seconds} --warm-up {_WARM_UP_SECONDS}"
    where = f"{door.url} --server-pid {door.pid} --wire {door.wire}"
    command = [sys.executable, "-m", "benchmarks.load", *f"{where} {how}".split()]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return Round.model_validate_json(done.stdout)


def summary(rounds: Sequence[Round]) -> Summary:
    """The medians; the interval is that of `figures.Spread`."""
    rate: Spread = spread([taken.steps_per_second for taken in rounds])
    return Summary(
        rate.median,
        (rate.low, rate.high),
        median(taken.p50_ms for taken in rounds),
        median(taken.p99_ms for taken in rounds),
        median(taken.server_us for taken in rounds),
        max(taken.client_share for taken in rounds),
    )
