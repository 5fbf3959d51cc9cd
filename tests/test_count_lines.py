"""The sizes of product and tests, counted in a small tree."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

COUNT_LINES = Path(__file__).parents[1] / "tools/count_lines.py"
MODULE = '''\
"""What it is.

And why.
"""

import os  # counts

# does not

LIMIT = 3
"""A field has one, too."""
TEXT = """
a line of a text

another
"""


def first(values: list[int]) -> int:
    """The first."""
    return (
        values[0]
    )
'''
ZEROS = {"files": 0, "code": 0, "docstrings": 0, "statements": 0, "templates": 0}


@pytest.fixture
def sizes(tmp_path: Path) -> dict[str, dict[str, dict[str, int]]]:
    for name, text in {
        "platform/agentworld/ledger/deep/deeper.py": MODULE,
        "platform/agentworld/ledger/__init__.py": "",
        "tools/run.sh": "#!/bin/sh\n\n# why\nexec true\n",
        "charts/agentworld/templates/service.yaml": "a: 1\n# counts as it stands\n",
        "tests/test_it.py": "def test_it():\n    assert True\n",
        "docs/example.py": MODULE,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [sys.executable, str(COUNT_LINES), "--json", str(tmp_path)]
    return json.loads(subprocess.check_output(command))


def test_code_is_neither_blank_nor_a_comment_nor_a_docstring(sizes):
    module = {"files": 2, "code": 10, "docstrings": 5, "statements": 5}
    assert sizes["product"]["platform/agentworld/ledger"] == ZEROS | module


def test_scripts_and_templates_are_counted_by_their_lines(sizes):
    assert sizes["product"]["tools"] == ZEROS | {"files": 1, "code": 1}
    assert sizes["product"]["charts/agentworld/templates"] == ZEROS | {"files": 1, "templates": 2}


def test_the_totals_separate_product_from_tests_and_exclude_docs(sizes):
    total = {"files": 4, "code": 11, "docstrings": 5, "statements": 5, "templates": 2}
    assert sizes["product"]["total"] == total
    assert sizes["tests"]["total"] == ZEROS | {"files": 1, "code": 2, "statements": 2}
