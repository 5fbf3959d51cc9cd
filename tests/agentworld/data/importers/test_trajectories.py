import pytest

from agentworld.data.importers import importer_of
from agentworld.errors import InputError
from agentworld.storage.trajectories import write_trajectories
from make import records

IMPORTER = importer_of("trajectories")


def test_what_was_written_is_read(tmp_path):
    trajectories = [records.trajectory(), records.trajectory(seed=1, domain="text")]
    write_trajectories(tmp_path / "a.jsonl", trajectories)
    assert list(IMPORTER.read(tmp_path)) == trajectories
    assert list(IMPORTER.read(tmp_path / "a.jsonl")) == trajectories


def test_the_digest_is_of_the_content(tmp_path):
    write_trajectories(tmp_path / "a.jsonl", [records.trajectory()])
    before = IMPORTER.digest(tmp_path), IMPORTER.digest(tmp_path / "a.jsonl")
    assert before == (IMPORTER.digest(tmp_path), IMPORTER.digest(tmp_path / "a.jsonl"))
    write_trajectories(tmp_path / "a.jsonl", [records.trajectory(seed=1)])
    assert IMPORTER.digest(tmp_path) != before[0]
    assert IMPORTER.digest(tmp_path / "a.jsonl") != before[1]


def test_a_folder_without_trajectories_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no trajectories"):
        IMPORTER.digest(tmp_path)


def test_an_importer_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(InputError, match="no importer 'csv' here; there is .*trajectories"):
        importer_of("csv")
