"""Steps per second of each wire, and of the core without any, in turn, at 64 episodes."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.door import Door
from benchmarks.doors import start_wires
from benchmarks.figures import Spread, ratios, spread
from benchmarks.load import Round
from benchmarks.rounds import Summary, measure, summary

EPISODES = 64
ROUNDS = 6
SECONDS = 4.0
CORE, GYMNASIUM = "core", "gymnasium"


class WireRates(NamedTuple):
    """The rounds of each wire by its name; those of the core are `core`."""

    rounds: Mapping[str, list[Round]]

    @property
    def summaries(self) -> dict[str, Summary]:
        """By wire."""
        return {name: summary(taken) for name, taken in self.rounds.items()}

    def added_p50_ms(self, wire: str) -> Spread:
        """What a step takes longer than in the core, round by round."""
        pairs = zip(self.rounds[wire], self.rounds[CORE], strict=True)
        return spread([ours.p50_ms - core.p50_ms for ours, core in pairs])

    def ratio(self, wire: str) -> Spread:
        """Of steps per second, over the core."""
        ours, core = (
            [taken.steps_per_second for taken in self.rounds[name]] for name in (wire, CORE)
        )
        return ratios(ours, core)

    def as_json(self) -> dict[str, object]:
        """The keys of `.bench/wires.json` that are about steps."""
        wires = [name for name in self.rounds if name != CORE]
        return {
            "episodes": EPISODES,
            "rates": {name: said._asdict() for name, said in self.summaries.items()},
            "added_p50_ms": {name: self.added_p50_ms(name)._asdict() for name in wires},
            "ratio": {name: self.ratio(name)._asdict() for name in wires},
        }


def measure_wires(folder: Path, rounds: int = ROUNDS, seconds: float = SECONDS) -> WireRates:
    """All wires are of one service, which is idle while the core is measured."""
    taken: dict[str, list[Round]] = {}
    with start_wires(folder) as doors:
        for number in range(rounds):
            for name, measured in _turn(doors, folder / f"core-{number}", seconds):
                taken.setdefault(name, []).append(measured)
    return WireRates(taken)


def _turn(doors: Mapping[str, Door], folder: Path, seconds: float) -> Iterator[tuple[str, Round]]:
    yield CORE, _round_of("benchmarks.core_load", str(folder), seconds)
    for wire, door in doors.items():
        yield wire, measure(door, EPISODES, seconds)
    yield GYMNASIUM, _round_of("benchmarks.gym_load", doors["http"].url, seconds)


def _round_of(program: str, where: str, seconds: float) -> Round:
    """Of a program that is its own load, in a process of its own."""
    how = f"{where} --episodes {EPISODES} --seconds {seconds}"
    command = [sys.executable, "-m", program, *how.split()]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return Round.model_validate_json(done.stdout)
