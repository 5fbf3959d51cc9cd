import json

import pytest

from agentworld.errors import InputError
from agentworld.records.base import digest_file
from agentworld.records.collected import Collected
from agentworld.storage.trajectories import (
    MANIFEST,
    domains_in,
    read_collected,
    read_trajectories,
    write_trajectories,
)
from make import records


def test_trajectories_are_read_back_unchanged(tmp_path):
    trajectories = [records.trajectory(seed=1), records.trajectory(("ls", "\u2028 [0] ~"), seed=2)]
    write_trajectories(tmp_path / "a.jsonl", trajectories)
    assert list(read_trajectories(tmp_path / "a.jsonl")) == trajectories


def test_a_trajectory_needs_no_seed_and_keeps_its_tools_and_states(tmp_path):
    tools = [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}]
    turns = [{"action": "a", "observation": "b"}, {"action": "c", "observation": "", "state": ""}]
    line = {"domain": "text", "source": "log", "tools": tools, "turns": turns}
    (tmp_path / "a.jsonl").write_text(json.dumps(line) + "\n")
    (trajectory,) = read_trajectories(tmp_path / "a.jsonl")
    assert trajectory.seed == 0
    assert [tool.name for tool in trajectory.tools] == ["read"]
    assert [turn.state for turn in trajectory.turns] == [None, ""]
    write_trajectories(tmp_path / "b.jsonl", [trajectory])
    assert list(read_trajectories(tmp_path / "b.jsonl")) == [trajectory]


def test_the_files_of_a_folder_are_read_in_name_order(tmp_path):
    for name, seed in (("b", 2), ("a", 1)):
        write_trajectories(tmp_path / f"{name}.jsonl", [records.trajectory(seed=seed)])
    assert [trajectory.seed for trajectory in read_trajectories(tmp_path)] == [1, 2]


def test_only_the_chunks_of_a_manifest_are_read(tmp_path):
    for name in ("a", "b"):
        write_trajectories(tmp_path / f"{name}.jsonl", [records.trajectory()])
    digest = digest_file(tmp_path / "a.jsonl")
    Collected(chunks={"a.jsonl": digest}).write(tmp_path / MANIFEST)
    assert len(list(read_trajectories(tmp_path))) == 1


def test_the_domains_of_a_folder_are_read_from_its_manifest(tmp_path):
    write_trajectories(tmp_path / "a.jsonl", [records.trajectory()])
    assert domains_in(tmp_path) == ()
    chunks = {"a.jsonl": digest_file(tmp_path / "a.jsonl")}
    Collected(chunks=chunks, domains=("shell", "text")).write(tmp_path / MANIFEST)
    assert domains_in(tmp_path) == ("shell", "text")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"no json\n", "Invalid JSON"),
        (b"\xff\xfe\n", "Invalid JSON"),
        (b"\n", "Invalid JSON"),
        (b'{"domain": "shell", "source": "x", "seed": "no number", "turns": []}\n', "seed"),
        (b'{"domain": "shell", "source": "x", "seed": 1}\n', "turns"),
        (b'{"domain": "t", "source": "x", "seed": 1, "turns": [{"action": "ls"}]}\n', "turns.0"),
    ],
    ids=["no JSON", "no text", "empty", "no number", "no turns", "no observation"],
)
def test_a_malformed_line_is_reported_with_its_file_and_field(tmp_path, line, problem):
    valid_line = records.trajectory().model_dump_json().encode() + b"\n"
    (tmp_path / "a.jsonl").write_bytes(valid_line + line)
    with pytest.raises(InputError, match=r"a\.jsonl line 2 is not a valid trajectory") as error:
        list(read_trajectories(tmp_path / "a.jsonl"))
    assert problem in str(error.value)
    assert not any(value in str(error.value) for value in ("no json", "no number", "'ls'"))


def test_the_problem_of_a_malformed_line_is_short(tmp_path):
    row = json.loads(records.trajectory().model_dump_json())
    for line in (row | {"turns": [{}] * 2_000}, row | {"x" * 10_000: 1}):
        (tmp_path / "a.jsonl").write_text(json.dumps(line))
        with pytest.raises(InputError, match="4000 values are wrong|x{80}: Extra") as error:
            list(read_trajectories(tmp_path / "a.jsonl"))
        assert len(str(error.value)) < 300 + len(str(tmp_path))


def test_the_trajectories_before_a_malformed_line_are_read(tmp_path):
    (tmp_path / "a.jsonl").write_text(records.trajectory().model_dump_json() + "\n{\n")
    trajectories = read_trajectories(tmp_path / "a.jsonl")
    assert next(trajectories) == records.trajectory()


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*a\.jsonl: No such file"):
        list(read_trajectories(tmp_path / "a.jsonl"))


def test_a_folder_without_trajectories_is_refused(tmp_path):
    with pytest.raises(InputError, match="has no trajectories"):
        read_collected(tmp_path)


@pytest.mark.parametrize("damage", ["change", "remove"])
def test_a_changed_or_missing_chunk_is_refused(tmp_path, damage):
    chunk = tmp_path / "a.jsonl"
    write_trajectories(chunk, [records.trajectory()])
    Collected(chunks={"a.jsonl": digest_file(chunk)}).write(tmp_path / MANIFEST)
    read_collected(tmp_path)
    if damage == "change":
        chunk.write_text(json.dumps({}))
    else:
        chunk.unlink()
    with pytest.raises(InputError, match=r"a\.jsonl is not the file of collected\.json"):
        read_collected(tmp_path)
