"""Training steps in two processes of this machine."""

import re
from pathlib import Path

import pytest

from agentworld.errors import InputError
from agentworld.runner.folders import CHECKPOINT, STAGE_PAGE, checkpoint_of
from agentworld.runner.progress import read_progress
from agentworld.steps.member import main
from agentworld.steps.run import run_by_name
from agentworld.storage.receipts import RECEIPT, read_receipt
from agentworld.train.resume import newest_checkpoint
from machines.forked import run_with_ranks
from machines.launched import launch, ranks_of, run_together
from make.training import Training, training
from waiting import DEADLINE, wait_for

MEMBER = ("-m", "agentworld.steps.member")


def folder_of(step: str, job: Training) -> Path:
    (folder,) = (path for path in (Path(job.store) / "steps" / step).iterdir() if path.is_dir())
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A store whose step `cpt` ran in two processes."""
    job = training(tmp_path_factory.mktemp("together") / "store")
    run_with_ranks(Path(job.store), main, ("cpt", *job))
    return job


@pytest.mark.parametrize("words", [(), ("evaluate", "demo", "store"), ("no step",)])
def test_a_step_that_cannot_run_in_several_processes_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="give one of: cpt, sft, rl"):
        main(words)


def test_a_step_without_its_arguments_is_refused() -> None:
    with pytest.raises(InputError, match="rl takes RECIPE STORE DATA PARENT, not 2 arguments"):
        main(("rl", "demo", "store"))


@pytest.mark.compute
def test_two_processes_write_the_same_record_as_one_process(
    trained: Training, tmp_path: Path
) -> None:
    single = checkpoint_of(Path(run_by_name("cpt", *training(tmp_path / "store"))))
    folder = folder_of("cpt", trained)
    joint = checkpoint_of(folder)
    assert joint.metrics == pytest.approx(single.metrics, rel=0.01)
    noise = {"artifact": single.artifact, "metrics": single.metrics}
    assert joint.model_copy(update=noise) == single
    assert read_receipt(folder).output == joint.artifact
    names = [CHECKPOINT, "model", RECEIPT, STAGE_PAGE]
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)


@pytest.mark.compute
def test_a_step_finished_by_several_processes_is_reused(trained: Training) -> None:
    folder = folder_of("cpt", trained)
    before = {path: path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")]}
    run_with_ranks(Path(trained.store), main, ("cpt", *trained))
    assert {path: path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")]} == before
    progress = read_progress(Path(trained.store), "cpt")
    assert progress
    assert progress.state == "reused"


@pytest.mark.compute
def test_a_step_resumed_after_a_killed_process_gives_the_same_result(
    trained: Training, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = training(tmp_path / "store")
    launcher = launch(*MEMBER, "cpt", *job)
    checkpoints = Path(job.store) / "steps" / "cpt"
    wait_for(lambda: list(checkpoints.glob("*/checkpoints/*/trainer_state.json")))
    members = ranks_of(launcher)
    members[1].kill()
    launcher.communicate(timeout=DEADLINE)
    assert launcher.returncode != 0
    assert not any(member.is_running() for member in members)
    monkeypatch.setenv("TRANSFORMERS_VERBOSITY", "info")
    output = run_together(*MEMBER, "cpt", *job)
    match = re.search(r"Resuming training from checkpoint .* global step (\d+)", output)
    assert match
    assert int(match[1]) >= 5
    actual, expected = (checkpoint_of(folder_of("cpt", item)) for item in (job, trained))
    assert actual == expected


@pytest.mark.compute
def test_a_terminated_launcher_leaves_a_checkpoint_to_resume_from(tmp_path: Path) -> None:
    job = training(tmp_path / "store", cpt={"epochs": 1000, "checkpoint_every": 20})
    launcher = launch(*MEMBER, "cpt", *job)
    checkpoints = Path(job.store) / "steps" / "cpt"
    wait_for(lambda: list(checkpoints.glob("*/checkpoints/*/trainer_state.json")))
    launcher.terminate()
    _, output = launcher.communicate(timeout=DEADLINE)
    assert launcher.returncode != 0
    match = re.search(r"error: preempted; run it again: it resumes from step (\d+)", output)
    assert match
    folder = folder_of("cpt", job) / "checkpoints"
    assert newest_checkpoint(folder) == f"checkpoint-{match[1]}"


@pytest.mark.compute
def test_rl_runs_in_several_processes(trained: Training) -> None:
    words = ("rl", *trained, str(folder_of("cpt", trained)))
    run_with_ranks(Path(trained.store), main, words)
    checkpoint = checkpoint_of(folder_of("rl", trained))
    parent = checkpoint_of(folder_of("cpt", trained))
    assert checkpoint.parents == (parent.artifact,)
    assert checkpoint.artifact != parent.artifact
    assert 0 <= checkpoint.metrics["last_reward"] <= 25


@pytest.mark.compute
def test_attempts_that_do_not_divide_equally_among_processes_are_refused(
    trained: Training, tmp_path: Path
) -> None:
    job = training(tmp_path / "store", rl={"prompts_per_step": 1})
    launcher = launch(*MEMBER, "rl", *job, folder_of("cpt", trained))
    _, output = launcher.communicate(timeout=DEADLINE)
    message = "2 processes cannot share the 3 attempts of a step alike"
    assert launcher.returncode != 0
    assert f"error: {message}" in output
    progress = read_progress(Path(job.store), "rl")
    assert progress
    assert progress.sentence.startswith(message)
