"""Training steps that two processes of this machine do together."""

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


def folder_of(step: str, given: Training) -> Path:
    (folder,) = (path for path in (Path(given.store) / "steps" / step).iterdir() if path.is_dir())
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A store whose step `cpt` ran in two processes."""
    given = training(tmp_path_factory.mktemp("together") / "store")
    run_with_ranks(Path(given.store), main, ("cpt", *given))
    return given


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
    alone = checkpoint_of(Path(run_by_name("cpt", *training(tmp_path / "store"))))
    folder = folder_of("cpt", trained)
    together = checkpoint_of(folder)
    assert together.metrics == pytest.approx(alone.metrics, rel=0.01)
    noise = {"artifact": alone.artifact, "metrics": alone.metrics}
    assert together.model_copy(update=noise) == alone
    assert read_receipt(folder).output == together.artifact
    kept = [CHECKPOINT, "model", RECEIPT, STAGE_PAGE]
    assert sorted(path.name for path in folder.iterdir()) == sorted(kept)


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
    given = training(tmp_path / "store")
    launched = launch(*MEMBER, "cpt", *given)
    checkpoints = Path(given.store) / "steps" / "cpt"
    wait_for(lambda: list(checkpoints.glob("*/checkpoints/*/trainer_state.json")), seconds=120)
    members = ranks_of(launched)
    members[1].kill()
    launched.communicate(timeout=DEADLINE)
    assert launched.returncode != 0
    assert not any(each.is_running() for each in members)
    monkeypatch.setenv("TRANSFORMERS_VERBOSITY", "info")
    said = run_together(*MEMBER, "cpt", *given)
    resumed = re.search(r"Resuming training from checkpoint .* global step (\d+)", said)
    assert resumed
    assert int(resumed[1]) >= 5
    again, whole = (checkpoint_of(folder_of("cpt", each)) for each in (given, trained))
    assert again == whole


@pytest.mark.compute
def test_a_terminated_launcher_leaves_a_checkpoint_to_resume_from(tmp_path: Path) -> None:
    given = training(tmp_path / "store", cpt={"epochs": 1000, "checkpoint_every": 20})
    launched = launch(*MEMBER, "cpt", *given)
    checkpoints = Path(given.store) / "steps" / "cpt"
    wait_for(lambda: list(checkpoints.glob("*/checkpoints/*/trainer_state.json")), seconds=120)
    launched.terminate()
    _, said = launched.communicate(timeout=DEADLINE)
    assert launched.returncode != 0
    at = re.search(r"error: preempted; run it again: it resumes from step (\d+)", said)
    assert at
    folder = folder_of("cpt", given) / "checkpoints"
    assert newest_checkpoint(folder) == f"checkpoint-{at[1]}"


@pytest.mark.compute
def test_rl_runs_in_several_processes(trained: Training) -> None:
    words = ("rl", *trained, str(folder_of("cpt", trained)))
    run_with_ranks(Path(trained.store), main, words)
    made = checkpoint_of(folder_of("rl", trained))
    parent = checkpoint_of(folder_of("cpt", trained))
    assert made.parents == (parent.artifact,)
    assert made.artifact != parent.artifact
    assert 0 <= made.metrics["last_reward"] <= 25


@pytest.mark.compute
def test_attempts_that_do_not_divide_equally_among_processes_are_refused(
    trained: Training, tmp_path: Path
) -> None:
    given = training(tmp_path / "store", rl={"prompts_per_step": 1})
    launched = launch(*MEMBER, "rl", *given, folder_of("cpt", trained))
    _, said = launched.communicate(timeout=DEADLINE)
    sentence = "2 processes cannot share the 3 attempts of a step alike"
    assert launched.returncode != 0
    assert f"error: {sentence}" in said
    progress = read_progress(Path(given.store), "rl")
    assert progress
    assert progress.sentence.startswith(sentence)
