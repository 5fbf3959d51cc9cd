"""An attacker who can write a ledger, its object store and MLflow, and what the audit finds of it.

python -m tamper.main --mutations 1000 --seed 1
"""

import argparse
import shutil
import sys
from pathlib import Path

import postgres
from tamper.whole import whole

_BENCH = Path(__file__).parents[2] / ".bench"


def main() -> int:
    """Exit status 1 where a mutation was not found and named, or nobody's was told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutations", type=int, default=1_000, help="over each database")
    parser.add_argument("--seed", default="1")
    words = parser.parse_args()
    folder = _BENCH / "tamper"
    shutil.rmtree(folder, ignore_errors=True)
    with postgres.running() as server, server.database() as url:
        report = whole(folder, url, words.mutations, words.seed)
    written = report.model_dump_json(indent=2) + "\n"
    (_BENCH / "tamper.json").write_text(written)
    print(written)
    return 0 if report.clean else 1


if __name__ == "__main__":
    sys.exit(main())
