"""`agentworld data list`, `show`, `diff`, `inspect` and `register`."""

import json

import pytest
from typer.testing import CliRunner

import make.datasets
from agentworld.records.dataset import DataSet
from agentworld_cli.main import app


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def first(store):
    return make.datasets.stored(store)


@pytest.fixture(scope="module")
def second(store):
    return make.datasets.stored(store, seed=1)


def run(store, *words: str) -> str:
    result = CliRunner().invoke(app, ["data", *words, "--store", str(store)])
    assert result.exit_code == 0, result.output or result.exception
    assert all(c.isprintable() or c == "\n" for c in result.stdout)
    return result.stdout


def test_the_data_sets_of_a_store_are_listed(store, first, second):
    lines = run(store, "list").splitlines()
    assert {line.split()[0] for line in lines} == {first.digest[:19], second.digest[:19]}
    entries = json.loads(run(store, "list", "--json"))
    assert {entry["digest"] for entry in entries} == {first.digest, second.digest}


def test_a_manifest_is_shown_by_the_start_of_its_digest(store, first):
    output = run(store, "show", first.digest[:20], "--json")
    assert DataSet.model_validate_json(output) == first.dataset
    assert "pools.cpt.num_samples" in run(store, "show", str(first.folder))


def test_data_diff_prints_differences_as_text_and_json(store, first, second):
    words = "diff", first.digest[:20], second.digest[:20]
    text = run(store, *words)
    assert "recipe.seed" in text
    assert "trajectories in both" in text
    report = json.loads(run(store, *words, "--json"))
    assert {"what": "recipe.seed", "first": 0, "second": 1} in report["differences"]
    assert report["num_both"] == first.dataset.num_trajectories


@pytest.mark.waits
def test_data_inspect_writes_a_page(store, first, tmp_path):
    out = tmp_path / "page.html"
    words = "inspect", first.digest, "--out", str(out)
    assert run(store, *words) == f"{out}\n"
    assert first.digest in out.read_text()
    report = json.loads(run(store, *words, "--json"))
    assert report["flow"]["imported"] == make.datasets.NUM_EPISODES
    assert len(report["quarantine"]) == make.datasets.NUM_BAD


@pytest.mark.waits
def test_a_data_set_is_registered_once(store, first):
    report = json.loads(run(store, "register", first.digest, "--json"))
    assert run(store, "register", first.digest[:20]).endswith(f"is run {report['run']}\n")
