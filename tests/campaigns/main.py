"""Runs one campaign: python -m campaigns.main NAME

NAMEs: faults-simulator, faults-operator, faults-train, tamper, garbage, sandbox.

Exits with status 1 if the judge has findings; the report is in `.bench/NAME.json`.
"""

import argparse
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from campaigns.harness.report import Report

_BENCH = Path(__file__).parents[2] / ".bench"


class Campaign(NamedTuple):
    """A module with `run(folder, num, seed)`, which returns a report."""

    module: str
    unit: str
    num: int
    """The default number."""
    help: str


CAMPAIGNS = {
    "faults-simulator": Campaign("service", "faults", 2_000, "break what the service depends on"),
    "faults-operator": Campaign("operator", "faults", 500, "break what the operator depends on"),
    "faults-train": Campaign("training", "faults", 100, "break trainings, and start them again"),
    "sandbox": Campaign("sandbox", "attempts", 500, "try to escape from a sandbox"),
    "tamper": Campaign("tamper", "mutations", 1_000, "tamper with a store, over each database"),
    "garbage": Campaign("garbage", "cases", 2_000, "leave garbage in a tampered store"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="name", required=True)
    for name, entry in CAMPAIGNS.items():
        command = commands.add_parser(name, help=entry.help)
        command.add_argument(f"--{entry.unit}", dest="num", type=int, default=entry.num)
        command.add_argument("--seed", default="1", help="decides what is done, in which order")
    arguments = parser.parse_args()
    name, module = arguments.name, CAMPAIGNS[arguments.name].module
    folder = _BENCH / name
    shutil.rmtree(folder, ignore_errors=True)
    campaign = import_module(f"campaigns.{module}.campaign")
    report: Report = campaign.run(folder, arguments.num, arguments.seed)
    (_BENCH / f"{name}.json").write_text(report.as_json())
    print(report.as_text())
    return 0 if report.clean else 1


if __name__ == "__main__":
    sys.exit(main())
