"""Waits for processes of tests, shows their progress, and ends them."""

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lanes.process import LaneProcess

_POLL_SECONDS = 0.2
_PROGRESS_SECONDS = 60.0
# Pytest's exit codes of a complete run.
_ALL_PASSED, _SOME_FAILED = 0, 1


def exit_on_signals() -> None:
    """Lets a terminated run end its lanes."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))


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


def as_ended(
    lanes: Sequence[LaneProcess], seconds: float = _PROGRESS_SECONDS
) -> Iterator[LaneProcess]:
    """Yields each lane when it has ended, and prints the progress at this interval."""
    report, running = _Report(seconds), list(lanes)
    while running:
        for lane in [lane for lane in running if not lane.is_running]:
            running.remove(lane)
            yield lane
        report.show(lanes)
        time.sleep(_POLL_SECONDS)


class _Report:
    """Prints a line at this interval."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._start = self._last = time.monotonic()

    def show(self, lanes: Sequence[LaneProcess]) -> None:
        """Prints the progress of these lanes if it is time."""
        now = time.monotonic()
        if now - self._last >= self._seconds:
            self._last = now
            minutes, seconds = divmod(round(now - self._start), 60)
            print(f"{minutes:4}:{seconds:02}  {progress(lanes)}", flush=True)


def progress(lanes: Sequence[LaneProcess]) -> str:
    """The number of ended tests of each lane."""
    parts = []
    for lane in lanes:
        results = lane.results
        failed = results.count("failed")
        num_done = len({test.name for test in results.tests})
        part = f"{lane.name} {num_done} of {results.num_collected}"
        parts.append(f"{part} ({failed} failed)" if failed else part)
    return ", ".join(parts)


def print_output(lane: LaneProcess) -> None:
    print(f"\n======== {lane.name} ========\n{lane.output}", flush=True)


def incomplete(lanes: Sequence[LaneProcess]) -> list[str]:
    """A sentence for each lane that did not run all of its tests."""
    return [
        f"the lane {lane.name} did not run to its end; its output above says why"
        for lane in lanes
        if lane.exit_code not in (_ALL_PASSED, _SOME_FAILED)
    ]
