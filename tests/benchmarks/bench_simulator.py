"""The simulator's core against its targets: `make bench-simulator`, `.bench/simulator.json`.

`python -m benchmarks.bench_simulator steps` measures one part alone: steps, memory or vllm.
"""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from agentworld.steps.targets import Figure
from benchmarks.episode_memory import measure_growth
from benchmarks.machine import BUSY, allow_many_files, machine, versions
from benchmarks.step_rates import StepRates, measure_rates

_BENCH = Path(__file__).parents[2] / ".bench"


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
    written = json.dumps({**known, **found, "missed": missed}, indent=2)
    (_BENCH / "simulator.json").write_text(written + "\n")
    show(figures, missed)
    return 1 if missed else 0


def steps(folder: Path) -> Part:
    rates = measure_rates(folder)
    show_rates(rates)
    return Part(
        rates.as_json(),
        [
            Figure("ratio.64", rates.ratio(64).median, must=1.0),
            Figure("ratio.1000", rates.ratio(1_000).median, must=1.0),
            Figure("added_p50_ms", rates.added_p50_ms, must=1.0, at_most=True),
        ],
    )


def memory(folder: Path) -> Part:
    growth = measure_growth(folder)
    found = {"episode_kib": growth.episode_kib, "growth_kib": growth._asdict()}
    return Part(found, [Figure("episode_kib", growth.episode_kib, must=50.0, at_most=True)])


def vllm(folder: Path) -> Part:
    # It brings torch, which the other parts can do without.
    from benchmarks.vllm_share import LEAST_ENGINE_MS, measure_share

    share = measure_share(folder)
    found = {
        "vllm_ratio": share.ratio.median,
        "vllm_ratio_interval": share.ratio[1:],
        "vllm_engine_ms": share.engine_ms,
        "prefix_hit_of_bound": share.hit_of_bound,
    }
    return Part(
        found,
        [
            Figure("vllm_engine_ms", share.engine_ms, must=LEAST_ENGINE_MS),
            Figure("vllm_ratio", share.ratio.median, must=0.97),
            Figure("prefix_hit_of_bound", share.hit_of_bound, must=0.95),
        ],
    )


_PARTS: dict[str, Callable[[Path], Part]] = {"steps": steps, "memory": memory, "vllm": vllm}


def show_rates(rates: StepRates) -> None:
    print(f"{'':<28}{'steps/s [low, high]':>24} {'p50 ms':>9} {'p99 ms':>9} {'CPU us':>7} ours/it")
    for server, by_episodes in rates.summaries.items():
        for n, said in by_episodes.items():
            low, high = said.steps_per_second_interval
            rate = f"{said.steps_per_second:.0f} [{low:.0f}, {high:.0f}]"
            costs = f"{said.p50_ms:9.2f} {said.p99_ms:9.2f} {said.server_us:7.0f}"
            ratio = rates.ratio(n, server).median
            print(f"{server:<18}{n:10,}{rate:>24} {costs} {ratio:7.2f}")


def show(figures: list[Figure], missed: list[str]) -> None:
    for figure in figures:
        print(f"{figure.name:<20} {figure.value:10.3f}  {figure.wants(figure.must)}")
    print(f"missed: {', '.join(missed) or 'nothing'}")


def _fresh_folder(part: str) -> Path:
    folder = _BENCH / "simulator" / part
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
