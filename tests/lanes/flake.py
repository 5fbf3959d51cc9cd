"""Searches for flaky tests: `python -m lanes.flake 20`, or in some parts `... 20 fast compute`.

Runs all tests three times, and each short test that waits at least that many times, over its
parameters; during the run a process keeps a core busy. The tests run in several processes.
"""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from lanes.fast import FAST, QUICK
from lanes.main import LANES
from lanes.process import LaneProcess, busy_core, lanes_folder
from lanes.repeating import function_of
from lanes.running import as_ended, ended, exit_on_signals, incomplete, print_output

_COMPUTE = ["tests/agentworld"]


def _folders(*names: str) -> list[str]:
    return [f"tests/agentworld/{name}" for name in names]


# These files need an API server too, so they run in the part that has one.
_ON_AN_API_SERVER = [
    *_folders("access/test_cluster_review.py", "lineage/test_kubeflow.py"),
    "tests/agentworld_cli/test_server_check.py",
]
_WAITS = {
    "operator": ["tests/agentworld_operator"],
    "kubernetes": ["tests/agentworld_pipelines", "tests/charts", *_ON_AN_API_SERVER],
    "console": ["tests/agentworld_cli", "tests/agentworld_console"],
    "services": _folders("audit", "ledger", "operations", "serving"),
    "steps": _folders("lineage", "runner", "steps", "storage"),
}


def _without(paths: Sequence[str]) -> list[str]:
    return [f"--ignore={path}" for path in paths]


def _waiting_tests(paths: Sequence[str]) -> tuple[str, ...]:
    elsewhere = [path for path in _ON_AN_API_SERVER if path not in paths]
    return (*LANES["waits"], *paths, *_without(elsewhere))


PARTS = {
    "fast": (*FAST, *QUICK),
    "compute": (*LANES["compute"], *_COMPUTE),
    "compute-others": (*LANES["compute"], *_without(_COMPUTE)),
    "nodes": LANES["nodes"],
    **{name: _waiting_tests(paths) for name, paths in _WAITS.items()},
    "waits-others": (*LANES["waits"], *_without([*chain(*_WAITS.values())])),
}
"""Pytest's arguments for each part."""


def main(times: int, *parts: str) -> int:
    """The exit status: 0 if no test of these parts failed, or of all parts if none is named."""
    if unknown := {*parts} - {*PARTS}:
        print(
            f"error: there is no part {min(unknown)}; name any of {', '.join(PARTS)}",
            file=sys.stderr,
        )
        return 2
    exit_on_signals()
    start, runs, failures = time.monotonic(), Counter[str](), Counter[str]()
    with lanes_folder() as folder, busy_core():
        lanes = [
            LaneProcess(name, folder, *PARTS[name], f"--repeat={times}") for name in parts or PARTS
        ]
        with ended(*lanes):
            for lane in as_ended([lane.start() for lane in lanes]):
                if lane.exit_code:
                    print_output(lane)
                lane.end()
        is_complete = not incomplete(lanes)
        for test in (test for lane in lanes for test in lane.results.tests):
            runs[function_of(test.name)] += 1
            failures[test.name] += test.outcome == "failed"
    flaky = {name: count for name, count in failures.items() if count}
    for name, count in flaky.items():
        print(f"failed {count} of {runs[function_of(name)]} times: {name}")
    minutes = (time.monotonic() - start) / 60
    print(f"{runs.total()} runs of {len(runs)} tests in {minutes:.0f} minutes")
    num_failed = sum(flaky.values())
    print(f"{runs.total() - num_failed} passed, {num_failed} failed")
    return int(num_failed > 0 or not is_complete)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:]))
