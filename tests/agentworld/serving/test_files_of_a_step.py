"""The amount of code that one step of an agent runs is bounded."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import agentworld

_MAX_FILES = 28
_ROOT = Path(agentworld.__file__).parent


class Trace:
    """The files of the package that run while the trace is on, in every thread started after it."""

    def __init__(self) -> None:
        self.is_on = False
        self.files: set[str] = set()

    def note(self, frame, event, _argument) -> None:
        path = Path(frame.f_code.co_filename)
        if self.is_on and event == "call" and path.is_relative_to(_ROOT):
            self.files.add(path.relative_to(_ROOT).as_posix())


@pytest.fixture
def trace() -> Iterator[Trace]:
    trace = Trace()
    threading.setprofile(trace.note)
    sys.setprofile(trace.note)
    yield trace
    sys.setprofile(None)
    threading.setprofile(None)


@pytest.mark.compute
def test_one_step_runs_code_of_a_bounded_number_of_files(trace, serve, capsys):
    service = serve()
    episode = service.reset()
    service.step(episode, "echo before", 1)  # loads all that is loaded once
    trace.is_on = True
    answer = service.step(episode, "echo now", 2)
    trace.is_on = False
    assert answer.json()["observation"] == "now\n[0] ~"
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(trace.files)} files run in one step: {', '.join(sorted(trace.files))}\n"
        )
    assert len(trace.files) <= _MAX_FILES
