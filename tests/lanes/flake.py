"""Searches for flaky tests: `python -m lanes.flake 20 3`.

Runs three rounds of both lanes, in which each short test that waits is repeated, so that it runs at
least that many times in all rounds together, over its parameters; meanwhile a process keeps a core
busy. The durations are those of the last `make test`; without one, the first round repeats nothing
and measures them. The tests that wait run in two processes, because one would take four hours.
"""

import sys
import time
from collections import Counter
from collections.abc import Sequence

from lanes.main import LANES, RESULTS, ended, exit_on_signals, finish, print_output
from lanes.process import LaneProcess, busy_core, lanes_folder
from lanes.repeating import function_of
from lanes.results import LaneResults

ROUNDS = 3
_KUBERNETES = (
    *("tests/agentworld_operator", "tests/agentworld_pipelines", "tests/charts", "tests/cluster"),
    "tests/test_images.py",
)
"""About half of the time, and all tests that share the cluster of nodes."""
PARTS = {
    "compute": LANES["compute"],
    "kubernetes": (*LANES["waits"], *_KUBERNETES),
    "others": (*LANES["waits"], *(f"--ignore={path}" for path in _KUBERNETES)),
}


def repetitions(times: int, durations_known: bool) -> Sequence[int]:
    """The repetitions of a short test in each round, so that all rounds together run it `times`
    times.
    """
    if durations_known:
        return [-(-times // ROUNDS)] * ROUNDS
    return [1, *[-(-(times - 1) // (ROUNDS - 1))] * (ROUNDS - 1)]


def main(times: int, num_rounds: int) -> int:
    """The exit status: 0 if no test failed; fewer rounds repeat fewer times."""
    exit_on_signals()
    start, runs, failures = time.monotonic(), Counter[str](), Counter[str]()
    is_whole = True
    with lanes_folder() as folder, busy_core():
        for number, repetition in enumerate(repetitions(times, RESULTS.exists())[:num_rounds]):
            repeating = (
                (f"--repeat={repetition}", f"--last-results={RESULTS}") if repetition > 1 else ()
            )
            round_folder = folder / f"round-{number}"
            lanes = [
                LaneProcess(name, round_folder, *part, *repeating) for name, part in PARTS.items()
            ]
            with ended(*lanes):
                finish([lane.start() for lane in lanes])
            for lane in lanes:
                is_whole &= lane.exit_code in (0, 1)
                if lane.exit_code:
                    print_output(lane)
                for test in lane.results.tests:
                    runs[function_of(test.name)] += 1
                    failures[test.name] += test.outcome == "failed"
            if not RESULTS.exists():
                tests = [test for lane in lanes for test in lane.results.tests]
                LaneResults(len(tests), tests).write(RESULTS)
    flaky = {name: count for name, count in failures.items() if count}
    for name, count in flaky.items():
        print(f"failed {count} of {runs[function_of(name)]} times: {name}")
    minutes = (time.monotonic() - start) / 60
    print(f"{runs.total()} runs of {len(runs)} tests in {minutes:.0f} minutes")
    num_failed = sum(flaky.values())
    print(f"{runs.total() - num_failed} passed, {num_failed} failed")
    return int(bool(flaky) or not is_whole)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
