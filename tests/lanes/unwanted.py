"""A pytest plugin: does not import a file if `-m` leaves out all of its tests."""

import re
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from lanes.plugin import LANES

_OF_THE_FILE = re.compile(r"^pytestmark = (\[[^\]]*\]|.*)", re.MULTILINE)
_NAME = re.compile(r"pytest\.mark\.(\w+)")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Slow tests import torch, transformers and MLflow, which takes seconds in each worker."""
    if not collection_path.match("test_*.py"):
        return None
    return True if is_unwanted(collection_path, config) else None


def is_unwanted(file: Path, config: pytest.Config) -> bool:
    """Whether `-m` leaves out all tests of a file."""
    expression = config.getoption("markexpr")
    match = _OF_THE_FILE.search(file.read_text()) if expression else None
    if match is None:
        return False
    names = frozenset(_NAME.findall(match[1]))
    if names.isdisjoint(LANES):  # its tests may have their own lanes
        return False
    selection = Expression.compile(expression)
    # A test has the markers of its file, and some also have `long`.
    possible = (names, names | {"long"})
    return not any(selection.evaluate(markers.__contains__) for markers in possible)
