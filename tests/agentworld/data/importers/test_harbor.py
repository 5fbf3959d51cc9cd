import json

import pytest

from agentworld.data.importers.base import form_of, importer_of
from agentworld.storage.source import SourceFile, files_of

ATIF = importer_of("atif")


def trajectory(*observations, **fields):
    steps = [
        {
            "source": "agent",
            "message": "",
            "tool_calls": [{"tool_call_id": "1", "function_name": "bash", "arguments": {}}],
            "observation": {"results": [{"source_call_id": "1", "content": observation}]},
        }
        for observation in observations
    ]
    agent = {"name": "a", "version": "1"}
    return {"schema_version": "ATIF-v1.7", "agent": agent, "steps": steps, **fields}


def write(folder, files):
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
    return folder


def read(folder):
    """The record of each file, by the file's name."""
    records = {}
    for file in files_of(str(folder)):
        for record in ATIF.read(file, ATIF.options(), "text"):
            assert not record.problem, (file.name, record.problem)
            records[file.name] = record
    return records


def observations(record):
    return [turn.observation for turn in record.trajectory.turns]


JOB = {
    "config.json": {"jobs_dir": "jobs"},
    "job.log": "it began",
    "lock.json": {},
    "result.json": {"n_trials": 2},
    "hello__a/agent/sessions/session.jsonl": {"type": "user", "message": {"role": "user"}},
    "hello__a/agent/recording.cast": "[0, 'o']",
    "hello__a/agent/trajectory.json": trajectory("one"),
    "hello__a/config.json": {"task": {"path": "/tasks/hello/"}},
    "hello__a/result.json": {"task_name": "org/hello", "trial_name": "hello__a"},
    "hello__a/verifier/reward.json": {"reward": 1},
    "hello__b/agent/trajectory.json": trajectory("two"),
    "hello__b/config.json": {"task": {"path": "/tasks/hello/"}},
    "steps__c/result.json": {"task_name": "steps"},
    "steps__c/steps/first/agent/trajectory.json": trajectory("three"),
}


def test_a_job_has_the_trajectories_of_its_trials_and_their_tasks(tmp_path):
    folder = write(tmp_path / "job", JOB)
    assert form_of(files_of(str(folder))) == "atif"
    records = read(folder)
    tasks = {name: (item.trajectory.task_id, observations(item)) for name, item in records.items()}
    assert tasks == {
        "hello__a/agent/trajectory.json": ("org/hello", ["one"]),
        "hello__b/agent/trajectory.json": ("hello", ["two"]),
        "steps__c/steps/first/agent/trajectory.json": ("steps", ["three"]),
    }


def test_a_single_trajectory_file_has_the_task_of_its_trial(tmp_path):
    folder = write(tmp_path / "job", JOB)
    (record,) = read(folder / "hello__a/agent/trajectory.json").values()
    assert record.trajectory.task_id == "org/hello"


def test_siblings_of_a_file_in_a_bucket_are_resolved():
    file = SourceFile("s3://bucket/job/trial/steps/one/agent/trajectory.json", "trajectory.json")
    assert file.sibling("../../../result.json").address == "s3://bucket/job/trial/result.json"
    assert file.sibling("trajectory.cont-1.json").name == "trajectory.cont-1.json"


def test_a_trial_whose_records_are_damaged_has_no_task(tmp_path):
    files = {"a/agent/trajectory.json": trajectory(), "a/result.json": "{", "a/config.json": "3"}
    (record,) = read(write(tmp_path, files)).values()
    assert record.trajectory.task_id == ""


def test_a_trajectory_is_read_under_any_file_name(tmp_path):
    folder = write(tmp_path, {"artifacts/result.json": trajectory("one")})
    assert [observations(record) for record in read(folder).values()] == [["one"]]


def test_a_trajectory_that_is_damaged_is_a_problem(tmp_path):
    write(tmp_path, {"a/agent/trajectory.json": "{", "a/result.json": {}})
    records = [
        (file.name, bool(record.problem))
        for file in files_of(str(tmp_path))
        for record in ATIF.read(file, ATIF.options(), "text")
    ]
    assert records == [("a/agent/trajectory.json", True)]


def test_a_trajectory_and_its_continuation_files_are_one_episode(tmp_path):
    files = {
        "trajectory.json": trajectory("1", continued_trajectory_ref="trajectory.cont-1.json"),
        "trajectory.cont-1.json": trajectory(
            "2", continued_trajectory_ref="trajectory.cont-2.json"
        ),
        "trajectory.cont-2.json": trajectory("3"),
        "trajectory.summarization-1-summary.json": trajectory(),
    }
    records = read(write(tmp_path / "agent", files))
    assert {name: observations(item) for name, item in records.items()} == {
        "trajectory.json": ["1", "2", "3"],
        "trajectory.summarization-1-summary.json": [],
    }
    places = [event.place for event in records["trajectory.json"].events if event.role == "action"]
    assert places[2] == "trajectory.cont-2.json: steps[0].tool_calls[0]"


@pytest.mark.parametrize(
    ("reference", "continuation"),
    [
        ("trajectory.cont-1.json", None),
        ("trajectory.cont-1.json", "{"),
        ("trajectory.cont-1.json", {"schema_version": "ATIF-v1.1"}),
        ("trajectory.json", None),
        ("elsewhere/trajectory.json", None),
    ],
)
def test_a_continuation_that_cannot_be_read_is_counted(tmp_path, reference, continuation):
    files = {"trajectory.json": trajectory("1", continued_trajectory_ref=reference)}
    files["elsewhere/trajectory.json"] = trajectory("2")
    if continuation is not None:
        files["trajectory.cont-1.json"] = continuation
    record = read(write(tmp_path, files))["trajectory.json"]
    assert observations(record) == ["1"]
    assert record.notes == {"continuation that cannot be read": 1}


def test_a_continuation_without_a_readable_start_is_a_separate_episode(tmp_path):
    files = {
        "trajectory.json": "{",
        "trajectory.cont-1.json": trajectory("2", continued_trajectory_ref="x.json"),
        "other.cont-1.json": trajectory("3"),
    }
    write(tmp_path, files)
    for name, observation in (("trajectory.cont-1.json", "2"), ("other.cont-1.json", "3")):
        (record,) = read(tmp_path / name).values()
        assert observations(record) == [observation]
