"""The files of a benchmark's figures."""

import json

import pytest

from benchmarks import report
from benchmarks.targets import TARGETS, Target


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """The folders of figures; those of the benchmark `core` have targets."""
    folders = tmp_path / ".bench", tmp_path / "figures"
    targets = (Target("fast", "", must=1.0), Target("slow", "", must=1.0))
    monkeypatch.setitem(TARGETS, "core", targets)
    monkeypatch.setattr(report, "BENCH", folders[0])
    monkeypatch.setattr(report, "PUBLISHED", folders[1])
    return folders


def test_a_full_run_is_published_with_its_command_and_missed_figures(folders):
    measured = {"commit": "c0ffee", "fast": 2.0, "slow": 0.5}
    assert report.publish("core", measured, ["gate"]) == 1
    for folder in folders:
        assert json.loads((folder / "core.json").read_text()) == {
            "command": "make bench-core",
            "commit": "c0ffee",
            "fast": 2.0,
            "slow": 0.5,
            "missed": ["slow", "gate"],
        }


def test_a_partial_run_does_not_change_the_published_figures(folders):
    assert report.publish("core", {"fast": 2.0}, parts=["a", "b"]) == 0
    assert json.loads((folders[0] / "core.json").read_text())["command"] == (
        'make bench-core PARTS="a b"'
    )
    assert not folders[1].exists()


def test_measured_figures_are_kept_where_another_figure_is_missing(folders):
    with pytest.raises(KeyError, match="slow"):
        report.publish("core", {"fast": 2.0})
    assert json.loads((folders[0] / "core.json").read_text()) == {
        "command": "make bench-core",
        "fast": 2.0,
    }
    assert not folders[1].exists()


def test_measured_on_returns_the_machine_and_the_commit():
    assert set(report.measured_on()) == {"machine", "commit"}
