"""A run's conclusion, from Kubeflow's and the steps' data."""

import time
from pathlib import Path
from typing import NamedTuple

import pytest

import make.job
from agentworld.errors import InputError
from agentworld.records.conclusion import Conclusion
from agentworld.runner.folders import VERDICT
from agentworld.runner.progress import ProgressFile
from agentworld.steps.conclude import conclude, conclusions


class Status(NamedTuple):
    state: str
    error_message: str | None = None


SUCCEEDED, FAILED = Status("SUCCEEDED"), Status("FAILED", "Task exit-handler-1 failed.")


def ended(
    store: Path, status: Status = FAILED, job: str = "job-1", pipeline: str = "world_model"
) -> Conclusion:
    return Conclusion.read(Path(conclude(pipeline, "demo", str(store), job, status)))


def begun(store: Path, step: str) -> ProgressFile:
    told = ProgressFile(store, step)
    told.begin()
    return told


def finished(store: Path, step: str, folder: Path | None = None) -> None:
    begun(store, step).finish("finished", folder or store, 1.0)


def test_a_run_without_failure_is_recorded_as_succeeded(tmp_path, capsys):
    before = time.time()
    finished(tmp_path, "collect")
    told = ended(tmp_path, SUCCEEDED)
    assert (told.job, told.pipeline, told.recipe) == ("job-1", "world_model", "demo")
    assert (told.state, told.step, told.sentence) == ("succeeded", "", "")
    rounding = 1e-3
    assert before - rounding < told.started.timestamp() <= told.ended.timestamp() + rounding
    assert capsys.readouterr().out == "world_model succeeded\n"


def test_a_run_ended_by_its_gate_is_recorded_as_refused_with_the_reason(tmp_path, capsys):
    make.job.verdict("rl.rule is 0.3").write(tmp_path / "steps/gate/1" / VERDICT)
    finished(tmp_path, "collect")
    finished(tmp_path, "gate", tmp_path / "steps/gate/1")
    told = ended(tmp_path, SUCCEEDED)
    assert (told.state, told.step, told.sentence) == ("refused", "gate", "rl.rule is 0.3")
    assert capsys.readouterr().out == "world_model refused at gate: rl.rule is 0.3\n"


def test_the_conclusion_of_a_failed_run_has_the_step_and_its_error_message(tmp_path):
    finished(tmp_path, "collect")
    begun(tmp_path, "sft").fail("StoreError", "the disk is full; free space")
    told = ended(tmp_path)
    assert (told.state, told.step, told.kind) == ("failed", "sft", "StoreError")
    assert told.sentence == "the disk is full; free space"


def test_a_killed_step_is_named_with_the_message_of_kubeflow(tmp_path):
    finished(tmp_path, "collect")
    begun(tmp_path, "rl")
    told = ended(tmp_path, Status("FAILED", "OOMKilled"))
    assert (told.step, told.kind) == ("rl", "")
    assert told.sentence == "its process ended without an error message; OOMKilled"


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (FAILED, FAILED.error_message),
        (Status("CANCELLED"), "Kubeflow says CANCELLED, without a reason"),
    ],
)
def test_the_message_of_kubeflow_is_used_when_no_step_reports_an_error(tmp_path, status, sentence):
    finished(tmp_path, "collect")
    told = ended(tmp_path, status)
    assert (told.state, told.step, told.sentence) == ("failed", "", sentence)


def test_the_failure_of_an_earlier_run_is_ignored(tmp_path):
    finished(tmp_path, "collect")
    begun(tmp_path, "sft").fail("StoreError", "the disk is full")
    assert ended(tmp_path).step == "sft"
    later = ended(tmp_path, job="job-2")  # nothing of it began
    assert (later.step, later.started, later.sentence) == ("", None, FAILED.error_message)


def test_the_failure_of_an_earlier_run_without_conclusion_is_ignored(tmp_path):
    finished(tmp_path, "collect")
    begun(tmp_path, "sft").fail("StoreError", "the disk is full")
    finished(tmp_path, "collect")
    assert ended(tmp_path).step == ""


def refused(store: Path) -> None:
    """Says what the steps of a world model say that its gate refused."""
    make.job.verdict("rl.rule is 0.3").write(store / "steps/gate/1" / VERDICT)
    for step in ("collect", "prepare", "gate"):
        finished(store, step, store / "steps/gate/1")


def measured(store: Path) -> None:
    """A night from its beginning to its end."""
    finished(store, "measure")
    assert ended(store, SUCCEEDED, "night", "nightly").state == "succeeded"


def test_a_nightly_run_and_a_concurrent_refused_training_conclude_separately(tmp_path):
    finished(tmp_path, "measure")
    refused(tmp_path)
    assert ended(tmp_path, SUCCEEDED, "night", "nightly").state == "succeeded"
    told = ended(tmp_path, SUCCEEDED)
    assert (told.state, told.step, told.sentence) == ("refused", "gate", "rl.rule is 0.3")


@pytest.mark.parametrize("is_night_first", [True, False])
def test_a_nightly_run_does_not_change_the_conclusion_of_a_failed_training(
    tmp_path, is_night_first
):
    finished(tmp_path, "collect")
    began = time.time()
    if is_night_first:
        measured(tmp_path)
    begun(tmp_path, "sft").fail("StoreError", "the disk is full; free space")
    if not is_night_first:
        measured(tmp_path)
    told = ended(tmp_path)
    assert (told.step, told.sentence) == ("sft", "the disk is full; free space")
    assert told.started.timestamp() < began + 1e-3


def test_a_failed_training_is_not_reported_as_the_failure_of_a_nightly_run(tmp_path):
    finished(tmp_path, "collect")
    begun(tmp_path, "sft").fail("StoreError", "the disk is full; free space")
    told = ended(tmp_path, FAILED, "night", "nightly")
    assert (told.step, told.sentence) == ("", FAILED.error_message)


def test_an_agent_run_and_a_concurrent_refused_training_conclude_separately(tmp_path):
    refused(tmp_path)
    finished(tmp_path, "collect")
    finished(tmp_path, "imitate")
    agent = ended(tmp_path, SUCCEEDED, "agent", "agent")
    assert (agent.state, agent.started is None) == ("succeeded", False)
    told = ended(tmp_path, SUCCEEDED)
    assert (told.state, told.sentence) == ("refused", "rl.rule is 0.3")
    assert told.started is None  # an agent's collect said so since


def test_a_conclusion_is_written_once(tmp_path):
    finished(tmp_path, "collect")
    first = ended(tmp_path, SUCCEEDED)
    assert ended(tmp_path, FAILED) == first


def test_conclusions_are_listed_newest_first(tmp_path):
    for job in ("b", "c", "a"):
        ended(tmp_path, SUCCEEDED, job)
    assert [each.job for each in conclusions(tmp_path)] == ["a", "c", "b"]
    assert conclusions(tmp_path / "nothing") == []


def test_an_invalid_conclusion_file_of_another_run_is_ignored(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/old.json").write_text('{"job": "old"}')
    ended(tmp_path, SUCCEEDED, "new")
    assert [each.job for each in conclusions(tmp_path)] == ["new"]


@pytest.mark.parametrize("job", ["../a", "", "{{job}}", "a/b"])
def test_an_invalid_job_id_is_refused(tmp_path, job):
    with pytest.raises(InputError, match="is not a job.s id"):
        conclude("agent", "demo", str(tmp_path), job, SUCCEEDED)
    assert list(tmp_path.iterdir()) == []
