"""Runs all tests: the fast ones first, then three lanes in parallel: `python -m lanes.main`.

Each lane's output is printed when it has ended; until then, a line each minute shows the progress.
The last line counts all tests.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lanes.budget import over_budget
from lanes.fast import fast_lanes
from lanes.process import ROOT, LaneProcess, deadline, lanes_folder
from lanes.running import as_ended, ended, exit_on_signals, incomplete, print_output
from lanes.summary import Summary, slowest

_NODES = ("tests/cluster", "tests/test_images.py")
"""Tests that need the images."""
_DEADLINE = deadline(2400)
LANES = {
    "compute": ("-m", "compute and not long", *_DEADLINE),
    "waits": ("-m", "waits and not long", *_DEADLINE, *(f"--ignore={path}" for path in _NODES)),
    "nodes": ("-m", "waits and not long", *_DEADLINE, *_NODES),
}
"""Pytest's arguments for each lane."""
_MEMORY = "/dev/shm"


def main() -> int:
    """The exit status: 0 if every test passed."""
    if os.geteuid() != 0:
        print("error: the tests make networks and nodes: run `make test` as root", file=sys.stderr)
        return 2
    exit_on_signals()
    with lanes_folder() as folder, lanes_folder(_MEMORY) as memory, _images() as images:
        fast = fast_lanes(folder, scratch=memory)
        lanes = [LaneProcess(lane, folder, *selection) for lane, selection in LANES.items()]
        with ended(*fast, *lanes):
            for lane in as_ended([lane.start() for lane in fast]):
                print_output(lane)
            compute, waits, nodes = lanes
            compute.start()
            waits.start()
            are_images_built = images.wait() == 0
            nodes.start()
            for lane in as_ended(lanes):
                print_output(lane)
        return _print_summary([*fast, *lanes], are_images_built)


@contextmanager
def _images() -> Iterator[subprocess.Popen[bytes]]:
    """Builds the images of the nodes, in parallel with tests that need none."""
    command = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "machines.images"]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _print_summary(lanes: Sequence[LaneProcess], are_images_built: bool) -> int:
    tests = [test for lane in lanes for test in lane.results.tests]
    errors = incomplete(lanes)
    if not are_images_built:
        errors.append("the images were not built; the first lines of the output say why")
    summary = Summary(tests, errors)
    print("\n".join([*slowest(tests), *over_budget(tests), *summary.lines()]))
    return int(summary.num_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
