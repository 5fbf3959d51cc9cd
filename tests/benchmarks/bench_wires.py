"""The simulator's wires against their targets: `make bench-wires`, `.bench/wires.json`.

`python -m benchmarks.bench_wires rates` measures one part alone: rates or storm.
"""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from agentworld.steps.targets import Figure
from benchmarks.machine import BUSY, allow_many_files, machine, versions
from benchmarks.storm import measure_storm
from benchmarks.wire_rates import CORE, WireRates, measure_wires

_BENCH = Path(__file__).parents[2] / ".bench"

OPENENV_PUBLISHED = {
    "source": "OpenEnv's tutorial on scaling: 8 cores, 2,048 sessions that wait 1 s in each step",
    "requests_per_second": 932,
    "p99_seconds": 1.97,
}
"""What OpenEnv says of itself, on a machine of its own."""


class Part(NamedTuple):
    """What one part found: keys of the JSON, and the figures that have a bound."""

    found: dict[str, object]
    figures: list[Figure]


def main(*chosen: str) -> int:
    """Exit status 1 where something that must hold does not."""
    allow_many_files()
    known = {"machine": machine(), "versions": versions()}
    if known["machine"]["load_average"] > BUSY:
        print("the machine is busy already; these figures are rough", file=sys.stderr)
    parts = [_PARTS[name](_fresh_folder(name)) for name in chosen or _PARTS]
    figures = [figure for part in parts for figure in part.figures]
    found = {key: value for part in parts for key, value in part.found.items()}
    missed = [figure.name for figure in figures if not figure.holds]
    told = {**known, "openenv_published": OPENENV_PUBLISHED, **found, "missed": missed}
    (_BENCH / "wires.json").write_text(json.dumps(told, indent=2) + "\n")
    for figure in figures:
        print(f"{figure.name:<28} {figure.value:10.3f}  {figure.wants(figure.must)}")
    print(f"missed: {', '.join(missed) or 'nothing'}")
    return 1 if missed else 0


def rates(folder: Path) -> Part:
    """They have no bound: what a wire costs is told."""
    measured = measure_wires(folder)
    show(measured)
    return Part(measured.as_json(), [])


def storm(folder: Path) -> Part:
    found = measure_storm(folder)
    return Part({"storm": found.as_json()}, found.figures)


def show(measured: WireRates) -> None:
    print(
        f"{'at 64 episodes':<16}{'steps/s [low, high]':>24} {'p50 ms':>8} {'p99 ms':>8}"
        f" {'added p50 ms':>13} {'of the core':>12} {'CPU us':>7}"
    )
    for wire, said in measured.summaries.items():
        low, high = said.steps_per_second_interval
        rate = f"{said.steps_per_second:.0f} [{low:.0f}, {high:.0f}]"
        line = f"{wire:<16}{rate:>24} {said.p50_ms:8.2f} {said.p99_ms:8.2f}"
        if wire != CORE:
            added, ratio = measured.added_p50_ms(wire).median, measured.ratio(wire).median
            line += f" {added:13.2f} {ratio:12.2f} {said.server_us:7.0f}"
        print(line)


_PARTS: dict[str, Callable[[Path], Part]] = {"rates": rates, "storm": storm}


def _fresh_folder(part: str) -> Path:
    folder = _BENCH / "wires" / part
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
