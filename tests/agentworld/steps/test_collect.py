"""Recorded trajectories are identified by their content, and not by their path."""

import json
import shutil
from pathlib import Path

import pytest

from agentworld.runner.step import output_of
from agentworld.steps.run import run_by_name
from agentworld.storage.trajectories import write_trajectories
from make import records


@pytest.fixture
def collect(tmp_path):
    """A function that collects a file; returns the step's folder."""

    def collect(file: Path) -> Path:
        recipe = tmp_path / "own.yaml"
        recipe.write_text(json.dumps({"name": "own", "collect": {"trajectories": str(file)}}))
        return Path(run_by_name("collect", str(recipe), str(tmp_path / "store")))

    return collect


def record(file: Path, *seeds: int) -> Path:
    write_trajectories(file, [records.trajectory(seed=seed) for seed in seeds])
    return file


def test_moved_trajectories_are_not_collected_again(tmp_path, collect):
    first = collect(record(tmp_path / "here/log.jsonl", 1, 2))
    mtime = (first / "receipt.json").stat().st_mtime_ns
    (tmp_path / "there").mkdir()
    path = shutil.move(tmp_path / "here/log.jsonl", tmp_path / "there/log.jsonl")
    assert collect(Path(path)) == first
    assert (first / "receipt.json").stat().st_mtime_ns == mtime


def test_changed_trajectories_are_collected_again(tmp_path, collect):
    file = record(tmp_path / "log.jsonl", 1, 2)
    first = collect(file)
    second = collect(record(file, 1, 2, 3))
    assert second != first
    assert output_of(str(second)) != output_of(str(first))


def test_trajectories_are_collected_again_by_a_changed_importer(tmp_path, collect, monkeypatch):
    file = record(tmp_path / "log.jsonl", 1, 2)
    first = collect(file)
    monkeypatch.setattr("agentworld.steps.collect.module_digest", records.digest)
    assert collect(file) != first
