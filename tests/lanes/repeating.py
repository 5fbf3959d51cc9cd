"""Repeats short tests within one run, with the fixtures of modules and sessions shared."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from lanes.results import LaneResults, TestResult

SHORT_SECONDS = 10.0
_ARGUMENT = "repetition"


class Repeating:
    """A pytest plugin: repeats each test that waits and takes less than ten seconds up to a total.

    Parameters count: a test with three is repeated a third as often.
    """

    def __init__(self, times: int, last_results: Path) -> None:
        self._times = times
        self._last = by_function(LaneResults.read(last_results).tests)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        test = metafunc.definition
        last = self._last.get(function_of(test.nodeid), [])
        is_short = last and max(item.seconds for item in last) < SHORT_SECONDS
        if is_short and test.get_closest_marker("waits") and not test.get_closest_marker("ordered"):
            metafunc.fixturenames.append(_ARGUMENT)
            metafunc.parametrize(_ARGUMENT, range(-(-self._times // len(last))))


def by_function(tests: Iterable[TestResult]) -> Mapping[str, Sequence[TestResult]]:
    """The results of each test function, with all its parameters."""
    results = defaultdict[str, list[TestResult]](list)
    for test in tests:
        results[function_of(test.name)].append(test)
    return results


def function_of(name: str) -> str:
    """Pytest's node id without parameters."""
    return name.partition("[")[0]
