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


def end_run(
    store: Path, status: Status = FAILED, job: str = "job-1", pipeline: str = "world_model"
) -> Conclusion:
    return Conclusion.read(Path(conclude(pipeline, "demo", str(store), job, status)))


def begin(store: Path, step: str) -> ProgressFile:
    progress = ProgressFile(store, step)
    progress.begin()
    return progress


def finish(store: Path, step: str, folder: Path | None = None) -> None:
    begin(store, step).finish("finished", folder or store, 1.0)


def test_a_run_without_failure_is_recorded_as_succeeded(tmp_path, capsys):
    before = time.time()
    finish(tmp_path, "collect")
    result = end_run(tmp_path, SUCCEEDED)
    assert (result.job, result.pipeline, result.recipe) == ("job-1", "world_model", "demo")
    assert (result.state, result.step, result.sentence) == ("succeeded", "", "")
    rounding = 1e-3
    assert before - rounding < result.started.timestamp() <= result.ended.timestamp() + rounding
    assert capsys.readouterr().out == "world_model succeeded\n"


def test_a_run_ended_by_its_gate_is_recorded_as_refused_with_the_reason(tmp_path, capsys):
    make.job.verdict("rl.rule is 0.3").write(tmp_path / "steps/gate/1" / VERDICT)
    finish(tmp_path, "collect")
    finish(tmp_path, "gate", tmp_path / "steps/gate/1")
    result = end_run(tmp_path, SUCCEEDED)
    assert (result.state, result.step, result.sentence) == ("refused", "gate", "rl.rule is 0.3")
    assert capsys.readouterr().out == "world_model refused at gate: rl.rule is 0.3\n"


def test_the_conclusion_of_a_failed_run_has_the_step_and_its_error_message(tmp_path):
    finish(tmp_path, "collect")
    begin(tmp_path, "sft").fail("StoreError", "the disk is full; free space")
    result = end_run(tmp_path)
    assert (result.state, result.step, result.kind) == ("failed", "sft", "StoreError")
    assert result.sentence == "the disk is full; free space"


def test_a_killed_step_is_named_with_the_message_of_kubeflow(tmp_path):
    finish(tmp_path, "collect")
    begin(tmp_path, "rl")
    result = end_run(tmp_path, Status("FAILED", "OOMKilled"))
    assert (result.step, result.kind) == ("rl", "")
    assert result.sentence == "its process ended without an error message; OOMKilled"


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (FAILED, FAILED.error_message),
        (Status("CANCELLED"), "Kubeflow says CANCELLED, without a reason"),
    ],
)
def test_the_message_of_kubeflow_is_used_when_no_step_reports_an_error(tmp_path, status, sentence):
    finish(tmp_path, "collect")
    result = end_run(tmp_path, status)
    assert (result.state, result.step, result.sentence) == ("failed", "", sentence)


def test_the_failure_of_an_earlier_run_is_ignored(tmp_path):
    finish(tmp_path, "collect")
    begin(tmp_path, "sft").fail("StoreError", "the disk is full")
    assert end_run(tmp_path).step == "sft"
    second = end_run(tmp_path, job="job-2")  # no step of it began
    assert (second.step, second.started, second.sentence) == ("", None, FAILED.error_message)


def test_the_failure_of_an_earlier_run_without_conclusion_is_ignored(tmp_path):
    finish(tmp_path, "collect")
    begin(tmp_path, "sft").fail("StoreError", "the disk is full")
    finish(tmp_path, "collect")
    assert end_run(tmp_path).step == ""


def refuse(store: Path) -> None:
    """Writes the progress of a world model's steps whose gate refused."""
    make.job.verdict("rl.rule is 0.3").write(store / "steps/gate/1" / VERDICT)
    for step in ("collect", "prepare", "gate"):
        finish(store, step, store / "steps/gate/1")


def run_nightly(store: Path) -> None:
    """Runs a nightly from its beginning to its end."""
    finish(store, "measure")
    assert end_run(store, SUCCEEDED, "night", "nightly").state == "succeeded"


def test_a_nightly_run_and_a_concurrent_refused_training_conclude_separately(tmp_path):
    finish(tmp_path, "measure")
    refuse(tmp_path)
    assert end_run(tmp_path, SUCCEEDED, "night", "nightly").state == "succeeded"
    result = end_run(tmp_path, SUCCEEDED)
    assert (result.state, result.step, result.sentence) == ("refused", "gate", "rl.rule is 0.3")


@pytest.mark.parametrize("is_night_first", [True, False])
def test_a_nightly_run_does_not_change_the_conclusion_of_a_failed_training(
    tmp_path, is_night_first
):
    finish(tmp_path, "collect")
    start = time.time()
    if is_night_first:
        run_nightly(tmp_path)
    begin(tmp_path, "sft").fail("StoreError", "the disk is full; free space")
    if not is_night_first:
        run_nightly(tmp_path)
    result = end_run(tmp_path)
    assert (result.step, result.sentence) == ("sft", "the disk is full; free space")
    assert result.started.timestamp() < start + 1e-3


def test_a_failed_training_is_not_reported_as_the_failure_of_a_nightly_run(tmp_path):
    finish(tmp_path, "collect")
    begin(tmp_path, "sft").fail("StoreError", "the disk is full; free space")
    result = end_run(tmp_path, FAILED, "night", "nightly")
    assert (result.step, result.sentence) == ("", FAILED.error_message)


def test_an_agent_run_and_a_concurrent_refused_training_conclude_separately(tmp_path):
    refuse(tmp_path)
    finish(tmp_path, "collect")
    finish(tmp_path, "imitate")
    agent = end_run(tmp_path, SUCCEEDED, "agent", "agent")
    assert (agent.state, agent.started is None) == ("succeeded", False)
    result = end_run(tmp_path, SUCCEEDED)
    assert (result.state, result.sentence) == ("refused", "rl.rule is 0.3")
    assert result.started is None  # the agent's collect has overwritten it


def test_a_conclusion_is_written_once(tmp_path):
    finish(tmp_path, "collect")
    first = end_run(tmp_path, SUCCEEDED)
    assert end_run(tmp_path, FAILED) == first


def test_conclusions_are_listed_newest_first(tmp_path):
    for job in ("b", "c", "a"):
        end_run(tmp_path, SUCCEEDED, job)
    assert [conclusion.job for conclusion in conclusions(tmp_path)] == ["a", "c", "b"]
    assert conclusions(tmp_path / "nothing") == []


def test_an_invalid_conclusion_file_of_another_run_is_ignored(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/old.json").write_text('{"job": "old"}')
    end_run(tmp_path, SUCCEEDED, "new")
    assert [conclusion.job for conclusion in conclusions(tmp_path)] == ["new"]


@pytest.mark.parametrize("job", ["../a", "", "{{job}}", "a/b"])
def test_an_invalid_job_id_is_refused(tmp_path, job):
    with pytest.raises(InputError, match="is not a job.s id"):
        conclude("agent", "demo", str(tmp_path), job, SUCCEEDED)
    assert list(tmp_path.iterdir()) == []
