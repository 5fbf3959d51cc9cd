"""Repeats tests within one run, with the fixtures of files and of the session shared."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby, zip_longest
from math import ceil

import pytest

from lanes.processor import tree_seconds

SHORT_SECONDS = 10.0
"""In processor time, because a test's time on the clock depends on the other parts."""
_LEAST_TIMES = 3


class Repeating:
    """A pytest plugin: runs each short test that waits several times, and all others three times.

    Parameters count: a test with three is repeated a third as often, but at least three times. A
    file of `ordered` tests is repeated as a whole, with new fixtures, also of the session.
    """

    def __init__(self, times: int) -> None:
        self._times = times

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly:
            return None
        num_parameters = Counter(function_of(item.nodeid) for item in session.items)
        groups = [list(group) for _, group in groupby(session.items, _unit)]
        for group, next_group in zip_longest(groups, groups[1:]):
            times = ceil(self._times / num_parameters[function_of(group[0].nodeid)])
            _repeat(group, times, next_group[0] if next_group else None)
        return True


def _unit(item: pytest.Item) -> str:
    """The repeated unit: a file of ordered tests, or one test."""
    return str(item.path) if item.get_closest_marker("ordered") else item.nodeid


def _repeat(group: Sequence[pytest.Item], times: int, successor: pytest.Item | None) -> None:
    same_group = _Again(group)
    seconds = min(
        _run(group, same_group), _run(group, same_group)
    )  # the first run makes shared fixtures
    marker = group[0].get_closest_marker
    if not marker("waits") or marker("ordered") or seconds >= SHORT_SECONDS:
        times = _LEAST_TIMES
    for _ in range(times - _LEAST_TIMES):
        _run(group, same_group)
    _run(group, successor)


def _run(group: Sequence[pytest.Item], successor: "pytest.Item | _Again | None") -> float:
    """The processor seconds that the tests took."""
    start = tree_seconds()
    for item, next_item in zip(group, [*group[1:], successor], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=next_item)
        if item.session.shouldfail:
            raise item.session.Failed(item.session.shouldfail)
    return tree_seconds() - start


class _Again:
    """Replaces the next test, so that pytest keeps the fixtures of their common collectors."""

    def __init__(self, group: Sequence[pytest.Item]) -> None:
        is_ordered = group[0].get_closest_marker("ordered")
        self._chain = [] if is_ordered else [*group[0].listchain()[:-1], self]

    def listchain(self) -> Sequence[object]:
        return self._chain


def function_of(name: str) -> str:
    """Pytest's node id without parameters."""
    return name.partition("[")[0]
