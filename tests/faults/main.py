"""Faults by the thousand over a service at work, and what a judge finds afterwards.

    python -m faults.main --faults 2000 --seed 1

The first part comes over a ledger in a file, the rest over one in PostgreSQL.
"""

import argparse
import shutil
import sys
from pathlib import Path

from faults.campaign import over_postgres, over_sqlite

_BENCH = Path(__file__).parents[2] / ".bench"
_SHARE_OF_POSTGRES = 0.4


def main() -> int:
    """Exit status 1 where a promise was broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--faults", type=int, default=2_000)
    parser.add_argument("--seed", default="1")
    words = parser.parse_args()
    folder = _BENCH / "faults"
    shutil.rmtree(folder, ignore_errors=True)
    with_server = int(words.faults * _SHARE_OF_POSTGRES)
    report = over_sqlite(folder / "sqlite", words.faults - with_server, words.seed).plus(
        over_postgres(folder / "postgres", with_server, words.seed)
    )
    (_BENCH / "faults-simulator.json").write_text(report.written())
    print(report.written())
    return 0 if report.clean else 1


if __name__ == "__main__":
    sys.exit(main())
