"""A pytest plugin: does not import a file all of whose tests `-m` leaves out."""

import re
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

_OF_THE_FILE = re.compile(r"^pytestmark = pytest\.mark\.(\w+)", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Slow tests import torch, transformers and MLflow, which take seconds in each worker."""
    expression = config.getoption("markexpr")
    if not expression or not collection_path.match("test_*.py"):
        return None
    marker = _OF_THE_FILE.search(collection_path.read_text())
    if marker is None or Expression.compile(expression).evaluate(lambda name: name == marker[1]):
        return None
    return True
