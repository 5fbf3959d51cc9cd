"""Where the figures of a benchmark are written."""

import json

import pytest

from agentworld.reports.targets import Figure
from benchmarks import report


@pytest.fixture
def folders(tmp_path, monkeypatch):
    folders = tmp_path / ".bench", tmp_path / "figures"
    monkeypatch.setattr(report, "BENCH", folders[0])
    monkeypatch.setattr(report, "_PUBLISHED", folders[1])
    return folders


FAST, SLOW = Figure("fast", 2.0, must=1.0), Figure("slow", 0.5, must=1.0)


def test_a_whole_run_is_published_with_its_command_and_what_it_missed(folders):
    assert report.publish("core", {"commit": "c0ffee", "fast": 2.0}, [FAST, SLOW], ["gate"]) == 1
    for folder in folders:
        assert json.loads((folder / "core.json").read_text()) == {
            "command": "make bench-core",
            "commit": "c0ffee",
            "fast": 2.0,
            "missed": ["slow", "gate"],
        }


def test_a_run_of_parts_leaves_the_published_figures_alone(folders):
    assert report.publish("core", {}, [FAST], options=report.parts_option(["a", "b"])) == 0
    assert json.loads((folders[0] / "core.json").read_text())["command"] == (
        'make bench-core PARTS="a b"'
    )
    assert not folders[1].exists()


def test_the_machine_and_the_commit_are_measured_on():
    assert set(report.measured_on()) == {"machine", "commit"}
