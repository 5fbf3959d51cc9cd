"""Two processes of this machine share by DeepSpeed what a training keeps, on their CPUs."""

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentworld.errors import InputError
from agentworld.recipes import load_recipe
from agentworld.recipes.train import NextTokenRecipe, WorldRlRecipe
from agentworld.records.checkpoint import Checkpoint
from agentworld.runner.folders import STAGE_PAGE, checkpoint_of, model_of
from agentworld.steps.member import main
from agentworld.steps.run import run_by_name
from agentworld.storage.working_copy import open_copy
from agentworld.train.resume import newest_checkpoint
from agentworld.train.zero import check_zero
from machines.forked import run_with_ranks
from machines.launched import launch, ranks_of, run_together
from make.training import Training, training
from waiting import DEADLINE, wait_for

pytestmark = pytest.mark.compute

MEMBER = ("-m", "agentworld.steps.member")
SHARED = {"zero_stage": 3, "muon_learning_rate": None, "epochs": 8}


def folder_of(step: str, given: Training) -> Path:
    (folder,) = (path for path in (Path(given.store) / "steps" / step).iterdir() if path.is_dir())
    return folder


def weights_of(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    weights: dict[str, Any] = load_file(model_of(folder) / "model.safetensors")
    return weights


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A store whose step `cpt` ran in two processes with sharded weights."""
    given = training(tmp_path_factory.mktemp("zero") / "store", cpt=SHARED, rl={"zero_stage": 3})
    run_with_ranks(Path(given.store), main, ("cpt", *given))
    return given


def test_a_recipe_without_zero_stage_keeps_its_digest() -> None:
    assert "zero_stage" not in NextTokenRecipe(stage="cpt").model_dump()
    assert "zero_stage" not in WorldRlRecipe().model_dump()
    assert WorldRlRecipe(zero_stage=2).model_dump()["zero_stage"] == 2


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        (
            {"stage": "cpt", "zero_stage": 2, "muon_learning_rate": 0.02},
            "zero_stage 2 cuts the matrices that Muon takes whole",
        ),
        (
            {"stage": "cpt", "zero_stage": 4, "muon_learning_rate": None},
            "zero_stage: it should be 1, 2 or 3",
        ),
        (
            {"stage": "imitation", "zero_stage": 1, "muon_learning_rate": None},
            "imitation is trained by one process alone",
        ),
    ],
    ids=["Muon", "no such stage", "one process"],
)
def test_a_recipe_with_an_invalid_zero_stage_is_refused(
    tmp_path: Path, fields: dict[str, object], wrong: str
) -> None:
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"name": "mine", "cpt": fields}))
    with pytest.raises(InputError, match=wrong):
        load_recipe(tmp_path / "mine.yaml")


def test_a_zero_stage_without_deepspeed_is_refused_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = training(tmp_path / "store", cpt=SHARED)
    monkeypatch.setitem(sys.modules, "deepspeed", None)
    with pytest.raises(InputError, match=r"not installed; install agentworld\[deepspeed\]"):
        run_by_name("cpt", *given)
    assert [path.name for path in folder_of("cpt", given).iterdir()] == [STAGE_PAGE]


def test_zero_on_several_machines_requires_a_shared_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = open_copy("memory://bucket/store", tmp_path)
    for name, value in {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match="zero_stage 2 has a part .*name a store on a claim"):
        check_zero(2, copy.root / "steps/cpt/a")
    check_zero(2, tmp_path)
    check_zero(None, copy.root)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    check_zero(2, copy.root)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training of one process in float32."""
    from machines.train_in_float32 import train

    folder = tmp_path_factory.mktemp("alone")
    train(folder)
    return folder


def folders_of(folder: Path, *stages: str) -> list[Path]:
    """A folder for a training of each stage."""
    folders = [folder / stage for stage in stages]
    for new in folders:
        new.mkdir(parents=True)
    return folders


def test_each_zero_stage_trains_the_same_weights_with_half_of_the_state(
    alone: Path, tmp_path: Path
) -> None:
    import torch

    from machines.train_in_float32 import train_in_each

    shared = folders_of(tmp_path, "1", "2", "3")
    run_with_ranks(tmp_path, train_in_each, shared)
    losses, weights = (
        json.loads((alone / "losses.json").read_text()),
        torch.load(alone / "weights.pt"),
    )
    whole = int((alone / "state-0").read_text())
    for folder in shared:
        assert json.loads((folder / "losses.json").read_text()) == pytest.approx(losses, rel=1e-4)
        for name, same in torch.load(folder / "weights.pt").items():
            # Adam divides by a root of its gradients' squares: their rounding becomes visible.
            torch.testing.assert_close(same, weights[name], rtol=0, atol=1e-3, msg=name)
        for rank in (0, 1):
            assert int((folder / f"state-{rank}").read_text()) == pytest.approx(whole / 2, rel=0.02)


def test_a_diverging_training_stops_at_its_step_without_a_checkpoint(
    tmp_path: Path,
) -> None:
    from machines.train_in_float32 import diverge_in_each

    folders = folders_of(tmp_path, "2", "3", "parameters-3")
    run_with_ranks(tmp_path, diverge_in_each, folders)
    for end in (folder / f"end-{rank}" for folder in folders for rank in (0, 1)):
        wrong = "the training diverged: at step 4 the norm of the gradient is inf; lower learning_"
        assert end.read_text().startswith(wrong), end
        assert not list(end.parent.glob("checkpoints/*"))


def assert_truncation_is_noticed(checkpoints: Path, name: str) -> None:
    (file,) = checkpoints.glob(f"*/{name}.safetensors")
    whole = file.read_bytes()
    file.write_bytes(whole[:-4])
    assert newest_checkpoint(checkpoints) is None
    file.write_bytes(whole)


@pytest.mark.parametrize(
    ("began", "resumed", "stages"),
    [
        (2, 3, "3"),
        pytest.param(2, 3, "2", marks=pytest.mark.long),
        pytest.param(2, 1, "123", marks=pytest.mark.long),
        pytest.param(1, 2, "3", marks=pytest.mark.long),
    ],
)
def test_a_training_is_resumed_by_another_number_of_processes(
    alone: Path, tmp_path: Path, began: int, resumed: int, stages: str
) -> None:
    from machines.train_in_float32 import train_in_each

    losses = json.loads((alone / "losses.json").read_text())
    folders = folders_of(tmp_path, *stages)
    run_with_ranks(tmp_path, train_in_each, folders, 5, num=began)
    for folder in folders:
        checkpoints = folder / "first/checkpoints"
        assert [path.name for path in checkpoints.iterdir()] == ["checkpoint-6"]
        assert_truncation_is_noticed(checkpoints, f"fragments-{began:05}-of-{began:05}")
    run_with_ranks(tmp_path, train_in_each, folders, num=resumed)
    for folder in folders:
        assert int((folder / "steps").read_text()) == len(losses) - 6
        same = json.loads((folder / "losses.json").read_text())
        assert same == pytest.approx(losses, rel=1e-4), folder


def test_a_sharded_training_writes_a_whole_model_and_checkpoint_record(
    trained: Training, tmp_path: Path
) -> None:
    alone = Path(run_by_name("cpt", *training(tmp_path / "store", cpt=SHARED)))
    together = folder_of("cpt", trained)
    record = checkpoint_of(together)
    assert record.recipe["zero_stage"] == 3
    assert record.metrics == pytest.approx(checkpoint_of(alone).metrics, rel=0.01)
    noise = {"artifact": record.artifact, "metrics": record.metrics}
    assert checkpoint_of(alone).model_copy(update=noise) == record
    shapes, same = (
        {name: (weight.shape, weight.dtype) for name, weight in weights_of(folder).items()}
        for folder in (alone, together)
    )
    assert same == shapes


@pytest.mark.long
def test_a_killed_sharded_training_resumes_and_ends_with_the_same_weights(
    trained: Training, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSFORMERS_VERBOSITY", "info")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    given = training(tmp_path / "store", cpt=SHARED)
    parts = Path(given.store) / "steps" / "cpt"

    def ended_at(checkpoint: str, how: signal.Signals) -> str:
        """The output of processes that are ended at a checkpoint."""
        go_on = tmp_path / f"after {checkpoint}"
        launched = launch("-m", "machines.paused_member", checkpoint, go_on, "cpt", *given)
        sealed = f"*/checkpoints/{checkpoint}/manifest.json"
        wait_for(lambda: list(parts.glob(sealed)), seconds=120)
        for rank in ranks_of(launched):
            rank.send_signal(how)
        go_on.touch()
        _, said = launched.communicate(timeout=DEADLINE)
        assert launched.returncode != 0
        return str(said)

    said = ended_at("checkpoint-5", signal.SIGTERM)
    told = re.search(r"preempted; run it again: it resumes from step (\d+)", said)
    assert told
    said = ended_at("checkpoint-10", signal.SIGKILL)
    assert resumed_from(said) == int(told[1])
    said = run_together(*MEMBER, "cpt", *given)
    assert resumed_from(said) >= 10
    again, whole = (checkpoint_of(folder_of("cpt", each)) for each in (given, trained))
    assert again.artifact == whole.artifact


def resumed_from(said: str) -> int:
    resumed = re.search(r"Resuming training from checkpoint .* global step (\d+)", said)
    assert resumed, said
    return int(resumed[1])


def test_world_rl_at_zero_stage_3_trains_the_same_weights_as_without_zero(
    trained: Training, tmp_path: Path
) -> None:
    import torch

    parent, plain = folder_of("cpt", trained), training(tmp_path / "store")
    for given in (trained, plain):
        run_with_ranks(Path(given.store), main, ("rl", *given, str(parent)))
    made: list[Checkpoint] = [checkpoint_of(folder_of("rl", each)) for each in (trained, plain)]
    assert made[0].parents == (checkpoint_of(parent).artifact,) != (made[0].artifact,)
    assert made[0].metrics == made[1].metrics
    weights, same = (weights_of(folder_of("rl", each)) for each in (plain, trained))
    for name, weight in weights.items():
        torch.testing.assert_close(same[name], weight, rtol=0, atol=1e-6, msg=name)
