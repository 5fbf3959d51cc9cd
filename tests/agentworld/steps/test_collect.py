"""Recorded trajectories count by what they hold, and not by where they lie."""

import json
import shutil
from pathlib import Path

import pytest

from agentworld.runner.step import output_of
from agentworld.steps.run import run_by_name
from agentworld.storage.trajectories import write_trajectories
from make import records


@pytest.fixture
def taken(tmp_path):
    """The folder of the step that takes in a file."""

    def taken(file: Path) -> Path:
        recipe = tmp_path / "own.yaml"
        recipe.write_text(json.dumps({"name": "own", "collect": {"trajectories": str(file)}}))
        return Path(run_by_name("collect", str(recipe), str(tmp_path / "store")))

    return taken


def recorded(file: Path, *seeds: int) -> Path:
    write_trajectories(file, [records.trajectory(seed=seed) for seed in seeds])
    return file


def test_moved_trajectories_are_not_collected_again(tmp_path, taken):
    first = taken(recorded(tmp_path / "here/log.jsonl", 1, 2))
    finished = (first / "receipt.json").stat().st_mtime_ns
    (tmp_path / "there").mkdir()
    moved = shutil.move(tmp_path / "here/log.jsonl", tmp_path / "there/log.jsonl")
    assert taken(Path(moved)) == first
    assert (first / "receipt.json").stat().st_mtime_ns == finished


def test_changed_trajectories_are_collected_again(tmp_path, taken):
    file = recorded(tmp_path / "log.jsonl", 1, 2)
    first = taken(file)
    second = taken(recorded(file, 1, 2, 3))
    assert second != first
    assert output_of(str(second)) != output_of(str(first))


def test_trajectories_are_collected_again_by_a_changed_importer(tmp_path, taken, monkeypatch):
    file = recorded(tmp_path / "log.jsonl", 1, 2)
    first = taken(file)
    monkeypatch.setattr("agentworld.steps.collect.module_digest", records.digest)
    assert taken(file) != first
