"""Runs all tests: the fast ones first, then two lanes in parallel: `python -m lanes.main`.

Each lane's output is printed when it has ended; until then, a line each minute shows the progress.
The last line counts all tests.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lanes.budget import over_budget
from lanes.process import ROOT, LaneProcess, lanes_folder
from lanes.results import LaneResults
from lanes.summary import Summary, slowest

# A fast test that runs for five minutes fails, with a stack trace.
_DEADLINE = ("-o", "faulthandler_timeout=300", "-o", "faulthandler_exit_on_timeout=true")
# No worker can replace a crashed one, because each has its own part of the tests.
_PARTS = ("-n", "auto", "--dist", "each", "--parts", "--max-worker-restart", "0")
# Pytest only knows the number of tests of one part: no percentages.
_DOTS = ("-o", "console_output_style=classic")
FAST = ("-m", "not compute and not waits", *_PARTS, *_DOTS, *_DEADLINE)
LANES = {lane: ("-m", f"{lane} and not long") for lane in ("compute", "waits")}
"""The tests of each lane, as pytest selects them."""
RESULTS = ROOT / ".bench/tests.jsonl"
"""The results of the last run, for `make flake`."""
_MEMORY = "/dev/shm"
_POLL_SECONDS = 0.2
_PROGRESS_SECONDS = 60.0
# Pytest's exit codes of a complete run.
_ALL_PASSED, _SOME_FAILED = 0, 1


def main() -> int:
    """The exit status: 0 if every test passed."""
    if os.geteuid() != 0:
        print("error: the tests make networks and nodes: run `make test` as root", file=sys.stderr)
        return 2
    exit_on_signals()
    with lanes_folder() as folder, lanes_folder(_MEMORY) as memory, _images() as images:
        fast = LaneProcess("fast", folder, *FAST, scratch=memory)
        lanes = [LaneProcess(lane, folder, *selection) for lane, selection in LANES.items()]
        with ended(fast, *lanes):
            finish([fast.start()])
            print_output(fast)
            compute, waits = lanes
            compute.start()
            images_built = images.wait() == 0
            waits.start()
            finish(lanes)
            for lane in lanes:
                print_output(lane)
        return _print_summary([fast, *lanes], images_built)


def exit_on_signals() -> None:
    """Lets a terminated run end its lanes."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))


@contextmanager
def _images() -> Iterator[subprocess.Popen[bytes]]:
    """Builds the images of the nodes, in parallel with tests that need none."""
    command = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "machines.images"]
    building = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        yield building
    finally:
        if building.poll() is None:
            os.killpg(building.pid, signal.SIGKILL)
            building.wait()


@contextmanager
def ended(*lanes: LaneProcess) -> Iterator[None]:
    """Shows the progress if this run is interrupted, and ends all lanes."""
    try:
        yield
    except BaseException:
        for lane in lanes:
            if lane.is_running:
                print_output(lane)
        raise
    finally:
        for lane in lanes:
            lane.end()


def finish(lanes: Sequence[LaneProcess]) -> None:
    """Waits until all have ended, and prints the progress."""
    start = last_report = time.monotonic()
    while any(lane.is_running for lane in lanes):
        time.sleep(_POLL_SECONDS)
        if time.monotonic() - last_report >= _PROGRESS_SECONDS:
            last_report = time.monotonic()
            print(f"{(last_report - start) / 60:4.0f} min  {progress(lanes)}", flush=True)


def progress(lanes: Sequence[LaneProcess]) -> str:
    """The number of ended tests of each lane."""
    parts = []
    for lane in lanes:
        results = lane.results
        failed = results.count("failed")
        part = f"{lane.name} {len(results.tests)} of {results.num_collected}"
        parts.append(f"{part} ({failed} failed)" if failed else part)
    return ", ".join(parts)


def print_output(lane: LaneProcess) -> None:
    print(f"\n======== {lane.name} ========\n{lane.output}", flush=True)


def _print_summary(lanes: Sequence[LaneProcess], images_built: bool) -> int:
    tests = [test for lane in lanes for test in lane.results.tests]
    LaneResults(len(tests), tests).write(RESULTS)
    errors = [
        f"the lane {lane.name} did not run to its end; its output above says why"
        for lane in lanes
        if lane.exit_code not in (_ALL_PASSED, _SOME_FAILED)
    ]
    if not images_built:
        errors.append("the images were not built; the first lines of the output say why")
    summary = Summary(tests, errors)
    print("\n".join([*slowest(tests), *over_budget(tests), *summary.lines()]))
    return int(summary.num_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
