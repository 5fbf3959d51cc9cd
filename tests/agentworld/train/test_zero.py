"""Two processes of this machine share the state of a training with DeepSpeed, on their CPUs."""

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


def folder_of(step: str, inputs: Training) -> Path:
    (folder,) = (path for path in (Path(inputs.store) / "steps" / step).iterdir() if path.is_dir())
    return folder


def weights_of(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    weights: dict[str, Any] = load_file(model_of(folder) / "model.safetensors")
    return weights


@pytest.fixture(scope="module")
def zero_inputs(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A store whose step `cpt` ran in two processes with sharded weights."""
    inputs = training(tmp_path_factory.mktemp("zero") / "store", cpt=SHARED, rl={"zero_stage": 3})
    run_with_ranks(Path(inputs.store), main, ("cpt", *inputs))
    return inputs


def test_a_recipe_without_zero_stage_keeps_its_digest() -> None:
    assert "zero_stage" not in NextTokenRecipe(stage="cpt").model_dump()
    assert "zero_stage" not in WorldRlRecipe().model_dump()
    assert WorldRlRecipe(zero_stage=2).model_dump()["zero_stage"] == 2


@pytest.mark.parametrize(
    ("fields", "problem"),
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
    tmp_path: Path, fields: dict[str, object], problem: str
) -> None:
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"name": "mine", "cpt": fields}))
    with pytest.raises(InputError, match=problem):
        load_recipe(tmp_path / "mine.yaml")


def test_a_zero_stage_without_deepspeed_is_refused_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = training(tmp_path / "store", cpt=SHARED)
    monkeypatch.setitem(sys.modules, "deepspeed", None)
    with pytest.raises(InputError, match=r"not installed; install agentworld\[deepspeed\]"):
        run_by_name("cpt", *inputs)
    assert [path.name for path in folder_of("cpt", inputs).iterdir()] == [STAGE_PAGE]


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
    """The folder of a training of one process in float32."""
    from machines.train_in_float32 import train

    folder = tmp_path_factory.mktemp("alone")
    train(folder)
    return folder


def folders_of(folder: Path, *stages: str) -> list[Path]:
    """A folder for a training of each stage."""
    folders = [folder / stage for stage in stages]
    for subfolder in folders:
        subfolder.mkdir(parents=True)
    return folders


def test_each_zero_stage_trains_the_same_weights_with_half_of_the_state(
    alone: Path, tmp_path: Path
) -> None:
    import torch

    from machines.train_in_float32 import train_in_each

    folders = folders_of(tmp_path, "1", "2", "3")
    run_with_ranks(tmp_path, train_in_each, folders)
    losses, weights = (
        json.loads((alone / "losses.json").read_text()),
        torch.load(alone / "weights.pt"),
    )
    total = int((alone / "state-0").read_text())
    for folder in folders:
        assert json.loads((folder / "losses.json").read_text()) == pytest.approx(losses, rel=1e-4)
        for name, weight in torch.load(folder / "weights.pt").items():
            # Adam divides by a root of its gradients' squares: their rounding becomes visible.
            torch.testing.assert_close(weight, weights[name], rtol=0, atol=1e-3, msg=name)
        for rank in (0, 1):
            assert int((folder / f"state-{rank}").read_text()) == pytest.approx(total / 2, rel=0.02)


def test_a_diverging_training_stops_at_its_step_without_a_checkpoint(
    tmp_path: Path,
) -> None:
    from machines.train_in_float32 import diverge_in_each

    folders = folders_of(tmp_path, "2", "3", "parameters-3")
    run_with_ranks(tmp_path, diverge_in_each, folders)
    for end_file in (folder / f"end-{rank}" for folder in folders for rank in (0, 1)):
        words = "the training diverged: at step 4 the norm of the gradient is inf; lower learning_"
        assert end_file.read_text().startswith(words), end_file
        assert not list(end_file.parent.glob("checkpoints/*"))


def assert_truncation_is_noticed(checkpoints: Path, name: str) -> None:
    (file,) = checkpoints.glob(f"*/{name}.safetensors")
    data = file.read_bytes()
    file.write_bytes(data[:-4])
    assert newest_checkpoint(checkpoints) is None
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("num_before", "num_after", "stages"),
    [
        (2, 3, "3"),
        pytest.param(2, 3, "2", marks=pytest.mark.long),
        pytest.param(2, 1, "123", marks=pytest.mark.long),
        pytest.param(1, 2, "3", marks=pytest.mark.long),
    ],
)
def test_a_training_is_resumed_by_another_number_of_processes(
    alone: Path, tmp_path: Path, num_before: int, num_after: int, stages: str
) -> None:
    from machines.train_in_float32 import train_in_each

    losses = json.loads((alone / "losses.json").read_text())
    folders = folders_of(tmp_path, *stages)
    run_with_ranks(tmp_path, train_in_each, folders, 5, num=num_before)
    for folder in folders:
        checkpoints = folder / "first/checkpoints"
        assert [path.name for path in checkpoints.iterdir()] == ["checkpoint-6"]
        assert_truncation_is_noticed(checkpoints, f"fragments-{num_before:05}-of-{num_before:05}")
    run_with_ranks(tmp_path, train_in_each, folders, num=num_after)
    for folder in folders:
        assert int((folder / "steps").read_text()) == len(losses) - 6
        resumed_losses = json.loads((folder / "losses.json").read_text())
        assert resumed_losses == pytest.approx(losses, rel=1e-4), folder


def test_a_sharded_training_writes_a_whole_model_and_checkpoint_record(
    zero_inputs: Training, tmp_path: Path
) -> None:
    single_folder = Path(run_by_name("cpt", *training(tmp_path / "store", cpt=SHARED)))
    sharded_folder = folder_of("cpt", zero_inputs)
    record = checkpoint_of(sharded_folder)
    assert record.recipe["zero_stage"] == 3
    assert record.metrics == pytest.approx(checkpoint_of(single_folder).metrics, rel=0.01)
    varying_fields = {"artifact": record.artifact, "metrics": record.metrics}
    assert checkpoint_of(single_folder).model_copy(update=varying_fields) == record
    shapes, sharded_shapes = (
        {name: (weight.shape, weight.dtype) for name, weight in weights_of(folder).items()}
        for folder in (single_folder, sharded_folder)
    )
    assert sharded_shapes == shapes


@pytest.mark.long
def test_a_killed_sharded_training_resumes_and_ends_with_the_same_weights(
    zero_inputs: Training, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSFORMERS_VERBOSITY", "info")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    inputs = training(tmp_path / "store", cpt=SHARED)
    steps_folder = Path(inputs.store) / "steps" / "cpt"

    def end_at(checkpoint: str, end_signal: signal.Signals) -> str:
        """The output of processes that are ended at a checkpoint."""
        go_file = tmp_path / f"after {checkpoint}"
        launcher = launch("-m", "machines.paused_member", checkpoint, go_file, "cpt", *inputs)
        manifest_pattern = f"*/checkpoints/{checkpoint}/manifest.json"
        wait_for(lambda: list(steps_folder.glob(manifest_pattern)))
        for rank in ranks_of(launcher):
            rank.send_signal(end_signal)
        go_file.touch()
        _, output = launcher.communicate(timeout=DEADLINE)
        assert launcher.returncode != 0
        return str(output)

    output = end_at("checkpoint-5", signal.SIGTERM)
    match = re.search(r"preempted; run it again: it resumes from step (\d+)", output)
    assert match
    output = end_at("checkpoint-10", signal.SIGKILL)
    assert resumed_from(output) == int(match[1])
    output = run_together(*MEMBER, "cpt", *inputs)
    assert resumed_from(output) >= 10
    resumed_checkpoint, expected_checkpoint = (
        checkpoint_of(folder_of("cpt", step_inputs)) for step_inputs in (inputs, zero_inputs)
    )
    assert resumed_checkpoint.artifact == expected_checkpoint.artifact


def resumed_from(output: str) -> int:
    match = re.search(r"Resuming training from checkpoint .* global step (\d+)", output)
    assert match, output
    return int(match[1])


def test_world_rl_at_zero_stage_3_trains_the_same_weights_as_without_zero(
    zero_inputs: Training, tmp_path: Path
) -> None:
    import torch

    parent, plain_inputs = folder_of("cpt", zero_inputs), training(tmp_path / "store")
    for inputs in (zero_inputs, plain_inputs):
        run_with_ranks(Path(inputs.store), main, ("rl", *inputs, str(parent)))
    checkpoints: list[Checkpoint] = [
        checkpoint_of(folder_of("rl", step_inputs)) for step_inputs in (zero_inputs, plain_inputs)
    ]
    assert checkpoints[0].parents == (checkpoint_of(parent).artifact,) != (checkpoints[0].artifact,)
    assert checkpoints[0].metrics == checkpoints[1].metrics
    weights, sharded_weights = (
        weights_of(folder_of("rl", step_inputs)) for step_inputs in (plain_inputs, zero_inputs)
    )
    for name, weight in weights.items():
        torch.testing.assert_close(sharded_weights[name], weight, rtol=0, atol=1e-6, msg=name)
