"""Runs the fast tests in parallel, with few examples of each property: `python -m lanes.fast`."""

import os
import sys
from pathlib import Path

from lanes.process import LaneProcess, deadline, lanes_folder
from lanes.running import as_ended, ended, exit_on_signals, incomplete, print_output
from lanes.summary import Summary

FAST = ("-m", "not compute and not waits", "-q", *deadline(300))
QUICK = ("--hypothesis-profile", "quick")
"""A tenth of the examples."""
_PROGRESS_SECONDS = 10.0


def main() -> int:
    """The exit status: 0 if every test passed."""
    exit_on_signals()
    with lanes_folder() as folder:
        lanes = fast_lanes(folder, *QUICK, shares_network=True)
        with ended(*lanes):
            for lane in as_ended([lane.start() for lane in lanes], _PROGRESS_SECONDS):
                if lane.exit_code:
                    print_output(lane)
        tests = [test for lane in lanes for test in lane.results.tests]
        summary = Summary(tests, incomplete(lanes))
    print("\n".join(summary.lines()))
    return int(summary.num_failed > 0)


def fast_lanes(
    folder: Path, *options: str, scratch: Path | None = None, shares_network: bool = False
) -> list[LaneProcess]:
    """The processes, each of which runs a part of the files of tests: three for two cores.

    While one waits for a process or a lock, another computes.
    """
    total = max(len(os.sched_getaffinity(0)) * 3 // 2, 1)
    return [
        LaneProcess(
            f"fast-{number}",
            folder,
            *FAST,
            f"--part={number}/{total}",
            *options,
            scratch=scratch,
            shares_network=shares_network,
        )
        for number in range(total)
    ]


if __name__ == "__main__":
    sys.exit(main())
