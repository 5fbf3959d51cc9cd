"""A pytest plugin: does not import a file all of whose tests `-m` leaves out."""

import re
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from lanes.plugin import LANES

_OF_THE_FILE = re.compile(r"^pytestmark = (\[[^\]]*\]|.*)", re.MULTILINE)
_NAME = re.compile(r"pytest\.mark\.(\w+)")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Slow tests import torch, transformers and MLflow, which take seconds in each worker."""
    expression = config.getoption("markexpr")
    if not expression or not collection_path.match("test_*.py"):
        return None
    markers = _OF_THE_FILE.search(collection_path.read_text())
    if markers is None:
        return None
    names = set(_NAME.findall(markers[1]))
    if names.isdisjoint(LANES):  # its tests may have lanes of their own
        return None
    return None if Expression.compile(expression).evaluate(names.__contains__) else True
