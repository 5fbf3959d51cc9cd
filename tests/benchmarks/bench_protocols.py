"""The simulator's protocols against their targets: `make bench-protocols`, `.bench/protocols.json`.

`python -m benchmarks.bench_protocols rates` measures only one part: rates or storm.
"""

import sys
from pathlib import Path

from benchmarks.machine import allow_many_files, versions
from benchmarks.rates import CORE, measure_protocols, protocols_as_json, show
from benchmarks.report import measure_parts
from benchmarks.storm import measure_storm

OPENENV_PUBLISHED = {
    "source": "OpenEnv's tutorial on scaling: 8 cores, 2,048 sessions that wait 1 s in each step",
    "requests_per_second": 932,
    "p99_seconds": 1.97,
}
"""OpenEnv's published figures, from another machine."""


def main(*parts: str) -> int:
    """Exit status 1 if a required target is missed."""
    allow_many_files()
    static = {"versions": versions(), "openenv_published": OPENENV_PUBLISHED}
    return measure_parts("protocols", {"rates": rates, "storm": storm}, parts, static)


def rates(folder: Path) -> dict[str, object]:
    """Without targets: shows the cost of each protocol."""
    rounds = measure_protocols(folder)
    show(rounds, CORE)
    return protocols_as_json(rounds)


def storm(folder: Path) -> dict[str, object]:
    return {"storm": measure_storm(folder).as_json()}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
