"""Training beside a plain loop and beside TRL, against its targets: `make bench-train`.

`.bench/train.json`. The same rows (lengths are log-normal, p95 four times p50) pass a model of five
million parameters on the CPU, each kind in a process of its own, in turn.
"""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.planner_error import planner_memory_error
from benchmarks.report import empty_folder, measured_on, publish
from benchmarks.train_exact import packing_differences, padding_share, resume_differences

_ROUNDS = {"ours": 9, "plain": 9, "padded": 3, "trl": 3}
"""The plain loop is so near to ours that a median of three says nothing about it."""


def main() -> int:
    """Exit status 1 where something that must hold does not."""
    known = measured_on()
    folder = empty_folder("train")
    rounds = [
        {
            kind: rate(kind, folder / f"{number}-{kind}")
            for kind in _ROUNDS
            if number < _ROUNDS[kind]
        }
        for number in range(max(_ROUNDS.values()))
    ]
    rates = {kind: [each[kind] for each in rounds if kind in each] for kind in _ROUNDS}
    ratios = {
        kind: [ours / other for ours, other in zip(rates["ours"], rates[kind], strict=False)]
        for kind in ("padded", "plain", "trl")
    }
    loss, gradient = packing_differences()
    measured: dict[str, Any] = {
        "tokens_per_second": {kind: round(median(rates[kind])) for kind in _ROUNDS},
        "tokens_per_second_interval": {
            kind: [round(min(rates[kind])), round(max(rates[kind]))] for kind in _ROUNDS
        },
        **{f"ratio_{kind}": round(median(ratios[kind]), 3) for kind in ratios},
        **{
            f"ratio_{kind}_interval": [round(min(ratios[kind]), 3), round(max(ratios[kind]), 3)]
            for kind in ratios
        },
        "padding_share": padding_share(),
        "packing_loss_diff": loss,
        "packing_grad_diff": gradient,
        "resume_different_weights": resume_differences(folder / "resume"),
        "planner_memory_error": round(planner_memory_error(), 3),
    }
    return publish("train", {**known, **measured})


def rate(kind: str, folder: Path) -> float:
    """Useful tokens a second of one training in a new process."""
    command = [sys.executable, "-m", "benchmarks.train_kinds", kind, str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures["tokens_per_second"]


if __name__ == "__main__":
    sys.exit(main())
