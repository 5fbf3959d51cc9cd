"""ZeRO with the optimizer's state, or the weights too, in the CPU's memory: two processes on CPUs.

Without clipping all results are equal bit for bit: with it DeepSpeed sums the norm in another
order.
"""

import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentworld.errors import InputError
from agentworld.recipes import load_recipe
from agentworld.recipes.train import NextTokenRecipe
from agentworld.steps.run import run_by_name
from machines.forked import run_with_ranks
from make.model import tiny_family
from make.training import training

pytestmark = pytest.mark.compute

PLAIN_NAMES = {"parameters-unclipped-3": "unclipped-3"}
LONG_PLAIN_NAMES = {
    "optimizer-unclipped-2": "unclipped-2",
    "optimizer-unclipped-1": "unclipped-1",
    "optimizer-unclipped-3": "unclipped-3",
    "optimizer-unclipped-accumulated-2": "unclipped-accumulated-2",
    "parameters-unclipped-accumulated-3": "unclipped-accumulated-3",
}


def folders_of(folder: Path, *names: str) -> list[Path]:
    folders = [folder / name for name in names]
    for subfolder in folders:
        subfolder.mkdir(parents=True)
    return folders


def losses_of(folder: Path) -> list[float]:
    losses: list[float] = json.loads((folder / "losses.json").read_text())
    return losses


def read_offload(folder: Path) -> list[list[object]]:
    """The device and page-locking of each part that DeepSpeed keeps in the CPU's memory."""
    places: list[list[object]] = json.loads((folder / "offload.json").read_text())
    return places


def assert_same_weights(folder: Path, other: Path) -> None:
    import torch

    weights = torch.load(other / "weights.pt")
    for name, weight in torch.load(folder / "weights.pt").items():
        assert torch.equal(weight, weights[name]), (folder.name, name)


def train(folder: Path, names: Iterable[str]) -> None:
    """Runs one training after the other in two processes."""
    from machines.train_in_float32 import train_in_each

    run_with_ranks(folder, train_in_each, folders_of(folder, *names))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of trainings with offload and without."""
    folder = tmp_path_factory.mktemp("trained")
    train(folder, chain.from_iterable(PLAIN_NAMES.items()))
    return folder


def test_offload_changes_no_loss_and_no_weight(trained: Path) -> None:
    for name, other in PLAIN_NAMES.items():
        assert losses_of(trained / name) == losses_of(trained / other), name
        assert_same_weights(trained / name, trained / other)


@pytest.mark.long
def test_offload_changes_no_loss_or_weight_at_other_stages_and_with_accumulation(
    tmp_path: Path,
) -> None:
    train(tmp_path, {*LONG_PLAIN_NAMES, *LONG_PLAIN_NAMES.values(), "3", "optimizer-3"})
    for name, other in LONG_PLAIN_NAMES.items():
        assert losses_of(tmp_path / name) == losses_of(tmp_path / other), name
        assert_same_weights(tmp_path / name, tmp_path / other)
    assert read_offload(tmp_path / "optimizer-unclipped-2") == [["cpu", False]]
    clipped_losses = losses_of(tmp_path / "optimizer-3")
    assert clipped_losses == pytest.approx(losses_of(tmp_path / "3"), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "num_offloaded"), [("unclipped-3", 0), ("parameters-unclipped-3", 2)]
)
def test_deepspeed_offloads_to_cpu_memory_only_if_the_recipe_enables_offload(
    trained: Path, name: str, num_offloaded: int
) -> None:
    assert read_offload(trained / name) == [["cpu", False]] * num_offloaded


def test_optimizer_offload_does_not_offload_the_weights() -> None:
    from agentworld.train.zero import offloading

    assert offloading("optimizer") == {"offload_optimizer": {"device": "cpu", "pin_memory": False}}


def test_a_sharded_base_is_loaded_with_the_recipes_offload_to_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentworld.train import model, sharding

    settings: list[dict[str, Any]] = []

    def end(config: dict[str, Any]) -> None:
        settings.append(config["zero_optimization"])
        raise ValueError("the test ends here")

    monkeypatch.setattr(model, "num_ranks", lambda: 2)
    monkeypatch.setattr(sharding, "HfDeepSpeedConfig", end)
    base = str(tiny_family(tmp_path / "base", "Qwen3"))
    cpt = {"zero_stage": 3, "muon_learning_rate": None, "offload": "parameters"}
    with pytest.raises(InputError, match="the test ends here"):
        run_by_name("cpt", *training(tmp_path / "store", model={"base": base}, cpt=cpt))
    place = {"device": "cpu", "pin_memory": False}
    assert settings == [{"stage": 3, "offload_optimizer": place, "offload_param": place}]


@pytest.mark.long
@pytest.mark.parametrize("num", [2, 3])
def test_a_killed_training_with_offload_is_resumed(trained: Path, tmp_path: Path, num: int) -> None:
    from machines.train_in_float32 import train_in_each

    folders = folders_of(tmp_path, *PLAIN_NAMES)
    run_with_ranks(tmp_path, train_in_each, folders, 5)
    run_with_ranks(tmp_path, train_in_each, folders, num=num)
    for folder in folders:
        reference_folder = trained / folder.name
        assert int((folder / "steps").read_text()) == len(losses_of(reference_folder)) - 6
        if num == 2:
            assert losses_of(folder) == losses_of(reference_folder)
            assert_same_weights(folder, reference_folder)
        assert losses_of(folder) == pytest.approx(losses_of(reference_folder), rel=1e-4)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"offload": "optimizer"}, "only ZeRO makes such parts; set zero_stage, or leave offload"),
        (
            {"offload": "parameters", "zero_stage": 2},
            "offload parameters has nothing to move at zero_stage 2",
        ),
        ({"offload": "disk", "zero_stage": 3}, "offload: it should be 'optimizer' or 'parameters'"),
        (
            {"offload": "optimizer", "zero_stage": 2, "muon_learning_rate": 0.02},
            "zero_stage 2 cuts the matrices that Muon takes whole",
        ),
    ],
    ids=["without ZeRO", "whole weights", "no such place", "Muon"],
)
def test_a_recipe_with_an_invalid_offload_is_refused(
    tmp_path: Path, fields: dict[str, Any], problem: str
) -> None:
    section = {"stage": "cpt", "muon_learning_rate": None, **fields}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"name": "mine", "cpt": section}))
    with pytest.raises(InputError, match=problem):
        load_recipe(tmp_path / "mine.yaml")


def test_a_recipe_without_offload_keeps_its_digest() -> None:
    assert "offload" not in NextTokenRecipe(stage="cpt", zero_stage=3).model_dump()
    recipe = NextTokenRecipe(stage="cpt", zero_stage=1, offload="optimizer")
    assert recipe.model_dump()["offload"] == "optimizer"
