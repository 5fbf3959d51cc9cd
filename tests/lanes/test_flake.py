"""The search for flaky tests, of tests that the test wrote."""

import re

import pytest

from lanes import flake
from lanes.process import ROOT

pytestmark = pytest.mark.waits

FLAKY = """
import pathlib, pytest
runs = pathlib.Path({runs!r})
@pytest.mark.waits
def test_fails_at_its_fourth_run():
    runs.open("a").write(".")
    assert len(runs.read_text()) != 4
@pytest.mark.waits
@pytest.mark.parametrize("n", [1, 2, 3])
def test_with(n): pass
@pytest.mark.waits
@pytest.mark.ordered
def test_ordered(): pass
"""
SOUND = """
def test_other(): pass
"""


@pytest.fixture(autouse=True)
def parts(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))  # as the Makefile sets it
    parts = {}
    for name, text in {"flaky": FLAKY, "sound": SOUND}.items():
        file = tmp_path / f"test_{name}.py"
        file.write_text(text.format(runs=str(tmp_path / "runs")))
        parts[name] = (str(file), "-p", "lanes.plugin", f"--rootdir={tmp_path}", "-c", "/dev/null")
    monkeypatch.setattr(flake, "PARTS", parts)


def test_a_flaky_test_is_reported_with_its_number_of_runs(capsys):
    assert flake.main(10) == 1
    output = capsys.readouterr().out
    assert "failed 1 of 10 times: test_flaky.py::test_fails_at_its_fourth_run\n" in output
    # 10 of the flaky test, 3 x 4 of the test with parameters, and 3 of each other test
    assert re.search(r"28 runs of 4 tests in \d+ minutes\n27 passed, 1 failed\n", output)
    assert "AssertionError" in output


def test_only_the_named_parts_run(capsys):
    assert flake.main(10, "sound") == 0
    assert "3 runs of 1 tests" in capsys.readouterr().out


def test_an_unknown_part_is_refused_with_the_known_parts(capsys):
    assert flake.main(10, "fats") == 2
    assert capsys.readouterr().err == "error: there is no part fats; name any of flaky, sound\n"
