"""The simulator's core against its targets: `make bench-simulator`, `.bench/simulator.json`.

`python -m benchmarks.bench_simulator steps` measures only one part: steps, memory or vllm.
"""

import sys
from pathlib import Path

from benchmarks.machine import allow_many_files, versions
from benchmarks.memory import measure_growth
from benchmarks.rates import PEER, measure_servers, show
from benchmarks.report import measure_parts


def main(*chosen_parts: str) -> int:
    """Exit status 1 if a required target is missed."""
    allow_many_files()
    parts = {"steps": steps, "memory": memory, "vllm": vllm}
    return measure_parts("simulator", parts, chosen_parts, {"versions": versions()})


def steps(folder: Path) -> dict[str, object]:
    rates = measure_servers(folder)
    for rounds in rates.rounds.values():
        show(rounds, PEER)
    return rates.as_json()


def memory(folder: Path) -> dict[str, object]:
    growth = measure_growth(folder)
    return {"episode_kib": growth.episode_kib, "growth_kib": growth._asdict()}


def vllm(folder: Path) -> dict[str, object]:
    # Imports torch, which the other parts do not need.
    from benchmarks.vllm_share import measure_share

    share = measure_share(folder)
    return {
        "vllm_ratio": share.ratio.median,
        "vllm_ratio_interval": share.ratio[1:],
        "vllm_engine_ms": share.engine_ms,
        "prefix_hit_of_bound": share.hit_of_bound,
    }


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
