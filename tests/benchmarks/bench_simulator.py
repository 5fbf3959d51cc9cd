"""The simulator's core against its targets: `make bench-simulator`, `.bench/simulator.json`.

`python -m benchmarks.bench_simulator steps` measures one part alone: steps, memory or vllm.
"""

import sys
from pathlib import Path

from agentworld.reports.targets import Figure
from benchmarks.machine import allow_many_files, versions
from benchmarks.memory import measure_growth
from benchmarks.rates import PEER, measure_servers, show
from benchmarks.report import Part, measure_parts


def main(*chosen: str) -> int:
    """Exit status 1 where something that must hold does not."""
    allow_many_files()
    parts = {"steps": steps, "memory": memory, "vllm": vllm}
    return measure_parts("simulator", parts, chosen, {"versions": versions()})


def steps(folder: Path) -> Part:
    rates = measure_servers(folder)
    for rounds in rates.rounds.values():
        show(rounds, PEER)
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
    return Part(
        {"episode_kib": growth.episode_kib, "growth_kib": growth._asdict()},
        [Figure("episode_kib", growth.episode_kib, must=50.0, at_most=True)],
    )


def vllm(folder: Path) -> Part:
    # It brings torch, which the other parts can do without.
    from benchmarks.vllm_share import LEAST_ENGINE_MS, measure_share

    share = measure_share(folder)
    return Part(
        {
            "vllm_ratio": share.ratio.median,
            "vllm_ratio_interval": share.ratio[1:],
            "vllm_engine_ms": share.engine_ms,
            "prefix_hit_of_bound": share.hit_of_bound,
        },
        [
            Figure("vllm_engine_ms", share.engine_ms, must=LEAST_ENGINE_MS),
            Figure("vllm_ratio", share.ratio.median, must=0.97),
            Figure("prefix_hit_of_bound", share.hit_of_bound, must=0.95),
        ],
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
