"""A run's two logs in files for other tools."""

import asyncio

import pyarrow.parquet as pq
import pytest

import make.service
from agentworld.audit.export.logs import export_run
from agentworld.client.trajectory import TrajectoryLog
from agentworld.errors import InputError, NotFound
from agentworld.records.episode import Source
from agentworld.records.trajectory_log import Sampled
from make import records

ODD_COMMAND = "echo \x00\ud800"


@pytest.fixture
def served_run(tmp_path):
    """A run of two episodes, the second a fork of the first, with its agent's log."""
    service = make.service.service(tmp_path)

    async def work():
        with TrajectoryLog(tmp_path / "log") as trajectory:
            client = service.client(trajectory=trajectory)
            run = (await client.open_run(make.service.OPENING)).id
            first = await client.reset(records.task())
            await client.step(first, ODD_COMMAND, Sampled("I say it", records.digest("weights"), 4))
            fork = {"fork": Source(episode=first, step=0)}
            await make.service.play(client, "ls", run=run, **fork)
            other = await make.service.play(client, "pwd")
            return run, first, other

    return service, *asyncio.run(work())


def test_both_files_can_be_joined_by_episode_and_step(served_run, tmp_path):
    service, run, first, _ = served_run
    export = export_run(run, service.ledger, tmp_path / "out", tmp_path / "log")
    assert (export.num_transitions, export.num_trajectories) == (2, 2)
    transitions = pq.read_table(export.transitions).to_pylist()
    trajectories = pq.read_table(export.trajectories).to_pylist()
    shared_columns = transitions[0].keys() & trajectories[0].keys()
    assert {"run", "episode", "step", "action_digest", "observation_digest"} <= shared_columns
    for name in shared_columns:
        assert [row[name] for row in transitions] == [row[name] for row in trajectories]
    assert transitions[0]["episode"] == first


def test_texts_are_exported_as_bytes_with_task_and_policy_columns(served_run, tmp_path):
    service, run, *_ = served_run
    export = export_run(run, service.ledger, tmp_path / "out", tmp_path / "log")
    transition = pq.read_table(export.transitions).to_pylist()[0]
    assert transition["action"] == b"echo \x00\xed\xa0\x80"
    assert transition["observation"] == b"\x00\xed\xa0\x80\n[0] ~"
    assert transition["task"] == records.task().id
    trajectory = pq.read_table(export.trajectories).to_pylist()[0]
    assert (trajectory["sampled"], trajectory["policy"], trajectory["policy_step"]) == (
        b"I say it",
        records.digest("weights"),
        4,
    )


def test_a_run_without_a_trajectory_is_exported_to_one_file(served_run, tmp_path):
    service, run, *_ = served_run
    export = export_run(run, service.ledger, tmp_path / "out", None)
    assert (export.trajectories, export.num_trajectories) == (None, None)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["transitions.parquet"]


def test_an_unreadable_trajectory_leaves_no_partial_file(served_run, tmp_path):
    service, run, *_ = served_run
    (tmp_path / "log" / "z.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match=r"z\.jsonl line 1"):
        export_run(run, service.ledger, tmp_path / "out", tmp_path / "log")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["transitions.parquet"]


def test_exporting_a_missing_run_writes_no_file(served_run, tmp_path):
    with pytest.raises(NotFound):
        export_run("gone", served_run[0].ledger, tmp_path / "out", None)
    assert not (tmp_path / "out").exists()
