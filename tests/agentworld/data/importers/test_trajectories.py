import json

import pytest

from agentworld.data.importers import ImportOptions, importer_of
from agentworld.errors import InputError
from agentworld.storage.source import files_of
from agentworld.storage.trajectories import write_trajectories
from make import records

IMPORTER = importer_of("trajectories")


def read(folder):
    items = [IMPORTER.read(file, ImportOptions(), "text") for file in files_of(str(folder))]
    return [item for file_items in items for item in file_items]


def test_written_trajectories_are_read_with_their_domains(tmp_path):
    trajectories = [records.trajectory(), records.trajectory(seed=1, domain="text")]
    write_trajectories(tmp_path / "a.jsonl", trajectories)
    assert [item.trajectory for item in read(tmp_path)] == trajectories


@pytest.mark.parametrize("line", [b"{}\n", b'{"domain": "shell"\n', b"\xff\n", b"[1]\n"])
def test_an_invalid_line_is_a_problem_and_the_others_are_read(tmp_path, line):
    good_line = records.trajectory().model_dump_json().encode() + b"\n"
    (tmp_path / "a.jsonl").write_bytes(good_line + line + good_line)
    first, bad_item, last = read(tmp_path)
    assert first.trajectory == last.trajectory == records.trajectory()
    assert (bad_item.place, bool(bad_item.problem)) == ("line 2", True)


def test_only_a_whole_trajectory_is_claimed():
    trajectory = json.loads(records.trajectory().model_dump_json())
    assert IMPORTER.claims(trajectory)
    assert not IMPORTER.claims({**trajectory, "turns": 3})
    assert not IMPORTER.claims({})


def test_an_unknown_importer_is_refused_and_the_known_importers_are_listed():
    with pytest.raises(InputError, match=r"no form of recordings 'xml' here; .*trajectories"):
        importer_of("xml")
