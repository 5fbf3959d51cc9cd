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

from benchmarks.report import empty_folder, measured_on, publish
from benchmarks.train_exact import packing_differences, padding_share, resume_differences

_ROUNDS = 3
_KINDS = ("ours", "padded", "plain", "trl")


def main() -> int:
    """Exit status 1 where something that must hold does not."""
    known = measured_on()
    folder = empty_folder("train")
    rounds = [
        {kind: rate(kind, folder / f"{number}-{kind}") for kind in _KINDS}
        for number in range(_ROUNDS)
    ]
    loss, gradient = packing_differences()
    measured: dict[str, Any] = {
        "tokens_per_second": {
            kind: round(median(each[kind] for each in rounds)) for kind in _KINDS
        },
        "tokens_per_second_interval": {
            kind: [round(limit(each[kind] for each in rounds)) for limit in (min, max)]
            for kind in _KINDS
        },
        **{
            f"ratio_{kind}": round(median(each["ours"] / each[kind] for each in rounds), 3)
            for kind in ("padded", "plain", "trl")
        },
        **{
            f"ratio_{kind}_interval": [
                round(limit(each["ours"] / each[kind] for each in rounds), 3)
                for limit in (min, max)
            ]
            for kind in ("padded", "plain", "trl")
        },
        "padding_share": padding_share(),
        "packing_loss_diff": loss,
        "packing_grad_diff": gradient,
        "resume_different_weights": resume_differences(folder / "resume"),
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
