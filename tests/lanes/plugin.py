"""A pytest plugin: assigns slow tests to their lane, and records the cost of each test."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lanes.processor import Meter, tree_seconds
from lanes.repeating import Repeating
from lanes.results import TestResult

LANES = ("compute", "waits")
SLOW_FIXTURES = {"tiny_model", "postgres_server", "bucket", "control_plane", "cluster"}
"""Fixtures of `tests/conftest.py` that make a test slow."""
_OUTCOMES = ("passed", "skipped", "failed")
MOST_FAST_SECONDS = 5.0
"""In processor time, so that other work on the machine does not count."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--results", type=Path, help="the file to write this run's figures to")
    parser.addoption("--repeat", type=int, help="how often to run each short test that waits")


def pytest_configure(config: pytest.Config) -> None:
    if file := config.getoption("results"):
        config.pluginmanager.register(Recorder(file), "lane-results")
    if times := config.getoption("repeat"):
        config.pluginmanager.register(Repeating(times), "lane-repeating")
    config.pluginmanager.register(Measuring(Meter(tree_seconds)), "lane-measuring")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fails the collection if a slow test has no lane, or two."""
    invalid = [item.nodeid for item in items if not _has_right_lane(item)]
    if invalid:
        names = "\n  ".join(invalid)
        raise pytest.UsageError(f"mark each slow test `compute` or `waits`, not both:\n  {names}")


def lane(item: pytest.Item) -> str:
    """The lane of a slow test; empty for a fast one."""
    return next((name for name in LANES if item.get_closest_marker(name)), "")


def _has_right_lane(item: pytest.Item) -> bool:
    num = sum(item.get_closest_marker(name) is not None for name in LANES)
    return num == 1 or (num == 0 and not _uses_slow_fixture(item))


def _uses_slow_fixture(item: pytest.Item) -> bool:
    """A fixture of a test's own file may have the same name, but is not slow."""
    if not isinstance(item, pytest.Function):
        return False
    fixtures = item._fixtureinfo.name2fixturedefs
    return any(fixtures[name][-1].baseid == "tests" for name in SLOW_FIXTURES & fixtures.keys())


class Measuring:
    """Adds the processor seconds of each phase to its report."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def pytest_collection_finish(self) -> None:
        """Imports count for no test."""
        self._meter.lap()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[pytest.TestReport]:
        report = yield
        report.processor_seconds = seconds = self._meter.lap()
        if report.when == "call" and report.passed and not lane(item):
            _check_is_fast(report, seconds)
        return report


def _check_is_fast(report: pytest.TestReport, seconds: float) -> None:
    if seconds > MOST_FAST_SECONDS:
        report.outcome = "failed"
        report.longrepr = f"it took {seconds:.1f} s of a processor; give it a lane"


class Recorder:
    """Writes the result of each test as soon as it has ended."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._running: dict[str, TestResult] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._file.write_text(json.dumps({"num_collected": len(session.items)}) + "\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        result = self._running.setdefault(report.nodeid, TestResult(report.nodeid))
        result.seconds += report.duration
        result.processor_seconds += getattr(report, "processor_seconds", 0.0)
        result.outcome = max(result.outcome, report.outcome, key=_OUTCOMES.index)
        if report.when == "teardown":
            with self._file.open("a") as file:
                file.write(self._running.pop(report.nodeid).line())
