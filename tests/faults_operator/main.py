"""Faults by the hundred over operators at work, and what a judge finds afterwards.

python -m faults_operator.main --faults 500 --seed 1
"""

import argparse
import shutil
import sys
from pathlib import Path

from faults_operator.campaign import campaign

_BENCH = Path(__file__).parents[2] / ".bench"


def main() -> int:
    """Exit status 1 where an object did not converge, or another promise was broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--seed", default="1")
    words = parser.parse_args()
    folder = _BENCH / "faults-operator"
    shutil.rmtree(folder, ignore_errors=True)
    report = campaign(folder, words.faults, words.seed)
    (_BENCH / "faults-operator.json").write_text(report.written)
    print(report.written)
    return 1 if report.diverged else 0


if __name__ == "__main__":
    sys.exit(main())
