"""Benchmarks are identified by their content, and not by their path."""

import json
from pathlib import Path

import pytest

from agentworld.steps.run import run_by_name
from agentworld.storage.source import digest_of
from agentworld.storage.trajectories import write_trajectories
from make import records

pytestmark = pytest.mark.compute

FACTS = [" ".join(f"fact{number * word}" for word in range(30)) for number in range(1, 61)]


@pytest.fixture
def prepare(tmp_path):
    """A function that prepares logs against a benchmark; returns the step's folder."""
    logs = [
        records.trajectory(("a", ""), ("b", fact), domain="text", held_out=number < 5)
        for number, fact in enumerate(FACTS)
    ]
    write_trajectories(tmp_path / "logs.jsonl", logs)
    recipe, store = tmp_path / "own.yaml", str(tmp_path / "store")
    fields = {"name": "own", "collect": {"trajectories": str(tmp_path / "logs.jsonl")}}
    recipe.write_text(json.dumps(fields))
    collected = run_by_name("collect", str(recipe), store)

    def prepare(benchmark: Path, num_workers: int = 1) -> Path:
        settings = {"benchmarks": [str(benchmark)], "num_workers": num_workers}
        recipe.write_text(json.dumps({**fields, "prepare": settings}))
        return Path(run_by_name("prepare", str(recipe), store, collected))

    return prepare


def write(path: Path, *texts: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def test_a_moved_benchmark_and_another_worker_count_change_nothing(tmp_path, prepare):
    first = prepare(write(tmp_path / "here/bench.jsonl", FACTS[10]))
    bench = write(tmp_path / "there/bench.jsonl", FACTS[10])
    second = prepare(bench, num_workers=2)
    assert second == first
    dataset = json.loads((first / "dataset.json").read_text())
    assert dataset["recipe"]["benchmarks"] == [digest_of(str(bench))]
    assert dataset["filtered"]["leak of a benchmark"] == 1


def test_a_changed_benchmark_prepares_the_data_again(tmp_path, prepare):
    first = prepare(write(tmp_path / "bench.jsonl", FACTS[10]))
    second = prepare(write(tmp_path / "bench.jsonl", FACTS[10], FACTS[11]))
    assert second != first
