"""Training beside a plain loop and beside TRL, against its targets: `make bench-train`.

`.bench/train.json`. A model of five million parameters trains on the same rows (lengths are
log-normal, p95 four times p50) on the CPU, each kind in a separate process, in rotation. A larger
model is trained in shards, for the memory of each process.
"""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.planner_error import planner_memory_error
from benchmarks.rank_memory import rank_bytes
from benchmarks.report import empty_folder, measured_on, publish
from benchmarks.targets import MOST_RANK_BYTES
from benchmarks.train_exact import packing_differences, padding_share, resume_differences

_ROUNDS = {"packed": 5, "padded": 3, "trl": 3}


def main() -> int:
    """Exit status 1 if a required target is missed."""
    machine_fields = measured_on()
    folder = empty_folder("train")
    rounds: dict[str, list[float]] = defaultdict(list)
    for number in range(max(_ROUNDS.values())):
        for kind in _ROUNDS:
            if number < _ROUNDS[kind]:
                for trainer, rate in rates(kind, folder / f"{number}-{kind}").items():
                    rounds[trainer].append(rate)
    ratios = {
        trainer: [own / other for own, other in zip(rounds["ours"], rounds[trainer], strict=False)]
        for trainer in ("padded", "plain", "trl")
    }
    loss, gradient = packing_differences()
    measured: dict[str, Any] = {
        "tokens_per_second": {name: round(median(values)) for name, values in rounds.items()},
        "tokens_per_second_interval": {
            name: [round(min(values)), round(max(values))] for name, values in rounds.items()
        },
        **{f"ratio_{kind}": round(median(ratios[kind]), 3) for kind in ratios},
        **{
            f"ratio_{kind}_interval": [round(min(ratios[kind]), 3), round(max(ratios[kind]), 3)]
            for kind in ratios
        },
        "padding_share": padding_share(),
        "packing_loss_diff": loss,
        "packing_grad_diff": gradient,
        "resume_bit_equal": int(resume_differences(folder / "resume") == 0),
        "planner_memory_error": round(planner_memory_error(), 3),
        "rank_bytes_per_parameter": {
            str(num_ranks): rank_bytes(folder, num_ranks) for num_ranks in MOST_RANK_BYTES
        },
    }
    return publish("train", {**machine_fields, **measured})


def rates(kind: str, folder: Path) -> dict[str, float]:
    """Useful tokens per second of the trainers in a new process."""
    command = [sys.executable, "-m", "benchmarks.train_kinds", kind, str(folder)]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    sys.exit(main())
