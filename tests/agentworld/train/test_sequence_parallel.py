"""Processes of this machine share each sequence of a training, on their CPUs."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from agentworld.errors import InputError
from agentworld.recipes import load_recipe
from agentworld.recipes.train import NextTokenRecipe
from agentworld.runner.folders import checkpoint_of
from agentworld.steps.member import main
from agentworld.steps.run import run_by_name
from machines.forked import run_with_ranks
from make.training import training

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import PreTrainedModel

pytestmark = pytest.mark.compute

SHARED = {"sequence_parallel": 2}
PLAIN = {"zero-1": "dense", "zero-2": "dense", "zero-3": "dense", "compiled": "dense"}
"""The equivalent training without it, if its name differs."""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a training of one process, by its name."""
    root = tmp_path_factory.mktemp("alone")

    @cache
    def folder_of(name: str) -> Path:
        from machines.train_on_sequences import train

        folder = root / name
        folder.mkdir()
        train(folder)
        return folder

    return lambda name: folder_of(PLAIN.get(name, name))


def folders_of(root: Path, *names: str) -> list[Path]:
    folders = [root / name for name in names]
    for folder in folders:
        folder.mkdir()
    return folders


def assert_same(single_folder: Path, shared_folder: Path) -> None:
    """Losses on trained and on held-out rows, gradients of a step, and weights after all steps."""
    import torch

    single_figures, shared_figures = (
        json.loads((path / "figures.json").read_text()) for path in (single_folder, shared_folder)
    )
    for name, figures in single_figures.items():
        assert shared_figures[name] == pytest.approx(figures, rel=1e-5), name
    # With ZeRO a weight has no gradient of its own.
    single_gradients, shared_gradients = (
        torch.load(path / "gradients.pt") for path in (single_folder, shared_folder)
    )
    for name, gradient in shared_gradients.items():
        tolerance = 1e-5 * float(single_gradients[name].abs().max())
        torch.testing.assert_close(
            gradient, single_gradients[name], rtol=0, atol=tolerance, msg=name
        )
    # Adam divides by a root of its gradients' squares: their rounding becomes visible.
    atol = 1e-3 if shared_folder.name == "muon" else 1e-4
    weights = torch.load(single_folder / "weights.pt")
    for name, weight in torch.load(shared_folder / "weights.pt").items():
        torch.testing.assert_close(weight, weights[name], rtol=0, atol=atol, msg=name)


@pytest.mark.parametrize(
    "names",
    [
        ["dense", "experts"],
        pytest.param(["adapter", "muon", "recomputed", "zero-1", "zero-2"], marks=pytest.mark.long),
        pytest.param(["compiled"], marks=pytest.mark.long),
    ],
    ids=",".join,
)
def test_two_processes_sharing_sequences_train_the_same_weights_as_one(
    names: list[str], alone: Callable[[str], Path], tmp_path: Path
) -> None:
    from machines.train_on_sequences import train_in_each

    folders = folders_of(tmp_path, *names)
    run_with_ranks(tmp_path, train_in_each, folders)
    for folder in folders:
        assert_same(alone(folder.name), folder)


@pytest.mark.long
@pytest.mark.parametrize(("name", "num"), [("thirds", 3), ("quarters", 4)])
def test_three_or_four_processes_sharing_sequences_train_the_same_weights_as_one(
    name: str, num: int, alone: Callable[[str], Path], tmp_path: Path
) -> None:
    from machines.train_on_sequences import train_in_each

    (folder,) = folders_of(tmp_path, name)
    run_with_ranks(tmp_path, train_in_each, [folder], num=num)
    assert_same(alone(name), folder)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "num_resumed"), [("zero-3", 4), ("zero-3", 1), ("dense", 4), ("dense", 1)]
)
def test_a_training_of_two_processes_is_resumed_by_another_number_of_processes(
    name: str, num_resumed: int, alone: Callable[[str], Path], tmp_path: Path
) -> None:
    from machines.train_on_sequences import train_in_each

    (folder,) = folders_of(tmp_path, name)
    run_with_ranks(tmp_path, train_in_each, [folder], 0)
    assert [path.name for path in (folder / "checkpoints").iterdir()] == ["checkpoint-1"]
    run_with_ranks(tmp_path, train_in_each, [folder], num=num_resumed)
    single_figures, shared_figures = (
        json.loads((path / "figures.json").read_text()) for path in (alone(name), folder)
    )
    assert shared_figures["losses"] == pytest.approx(single_figures["losses"], rel=1e-5)
    assert shared_figures["validation"] == pytest.approx(single_figures["validation"][1:], rel=1e-5)
    assert json.loads((folder / "steps.json").read_text()) == len(single_figures["losses"]) - 1


def test_each_process_gets_its_tokens_with_their_positions_and_targets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    from agentworld.train import sequence_parallel
    from agentworld.train.batches import NO_TARGET, to_next_tokens
    from agentworld.train.sequence_parallel import SequenceGroup

    ids, is_target = torch.arange(10, 18)[None], torch.arange(8)[None] % 2 == 0
    group = SequenceGroup()
    group.num_processes = 3
    batch = to_next_tokens({"input_ids": ids, "is_target": is_target})
    parts = []
    for rank in range(3):
        monkeypatch.setattr(sequence_parallel, "rank", lambda rank=rank: rank)
        parts.append({name: part.tolist() for name, part in group.part_of(batch).items()})
    no_target = NO_TARGET
    assert parts == [
        {
            "input_ids": [[10, 11, 12]],
            "targets": [[no_target, 12, no_target]],
            "position_ids": [[0, 1, 2]],
        },
        {
            "input_ids": [[13, 14, 15]],
            "targets": [[14, no_target, 16]],
            "position_ids": [[3, 4, 5]],
        },
        {
            "input_ids": [[16, 17, 0]],
            "targets": [[no_target, no_target, no_target]],
            "position_ids": [[6, 7, 8]],
        },
    ]


def test_a_recipe_without_sequence_parallel_keeps_its_digest() -> None:
    assert "sequence_parallel" not in NextTokenRecipe(stage="cpt").model_dump()
    assert NextTokenRecipe(stage="sft", **SHARED).model_dump()["sequence_parallel"] == 2


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"stage": "cpt", "packing": True, **SHARED},
            "sequence_parallel 2 .* set packing to false",
        ),
        ({"stage": "imitation", **SHARED}, "one process alone; leave sequence_parallel out"),
        ({"stage": "sft", "sequence_parallel": 1}, "sequence_parallel: "),
    ],
    ids=["packing", "imitation", "one"],
)
def test_a_recipe_with_an_invalid_sequence_parallel_is_refused(
    tmp_path: Path, fields: dict[str, object], problem: str
) -> None:
    stage = {"imitation": "agent"}.get(str(fields["stage"]), str(fields["stage"]))
    section = {"stage": "agent", "imitation": fields} if stage == "agent" else fields
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"name": "mine", stage: section}))
    with pytest.raises(InputError, match=problem):
        load_recipe(tmp_path / "mine.yaml")


def test_a_number_of_processes_not_divisible_by_sequence_parallel_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentworld.train import next_token

    inputs = training(tmp_path / "store", cpt=SHARED)
    monkeypatch.setattr(next_token, "num_ranks", lambda: 3)
    with pytest.raises(InputError) as error:
        run_by_name("cpt", *inputs)
    assert str(error.value) == (
        "sequence_parallel 2 does not divide 3, the number of processes; start a multiple of 2"
        " processes, or set sequence_parallel to a divisor of 3"
    )


def test_gated_delta_layers_are_refused_with_the_error_in_the_guide(
    tmp_path: Path,
) -> None:
    from make.model import tiny_family

    base = tiny_family(tmp_path / "base", "Qwen3_5")
    inputs = training(tmp_path / "store", model={"base": str(base)}, cpt={"sequence_parallel": 4})
    with pytest.raises(InputError) as error:
        run_by_name("cpt", *inputs)
    guide = (Path(__file__).parents[3] / "docs/guides/training.md").read_text()
    assert f"```text\nerror: {error.value}\n```" in guide


def model_of(family: str = "Qwen3", **sizes: Any) -> PreTrainedModel:
    """A layer on the meta device."""
    import torch
    import transformers

    defaults = {"vocab_size": 9, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    config = getattr(transformers, f"{family}Config")(**defaults | sizes)
    with torch.device("meta"):
        model: PreTrainedModel = getattr(transformers, f"{family}ForCausalLM")(config)
    return model


def test_a_sliding_window_is_refused() -> None:
    from agentworld.train.sequence_parallel import check_architecture

    sizes = {"num_attention_heads": 2, "num_key_value_heads": 2}
    sliding_model = model_of("Mistral", sliding_window=4, **sizes)
    with pytest.raises(InputError, match="MistralForCausalLM has layers of sliding attention"):
        check_architecture(sliding_model, 2)
    check_architecture(sliding_model, None)
    check_architecture(model_of("Mistral", sliding_window=None, **sizes), 2)


@pytest.mark.parametrize(("num_heads", "num_key_heads"), [(6, 6), (4, 1), (8, 2), (4, 4)])
@pytest.mark.parametrize("num_sharing", [2, 3, 4, 8])
def test_heads_are_split_evenly_or_refused(
    num_heads: int, num_key_heads: int, num_sharing: int
) -> None:
    from agentworld.train.sequence_parallel import check_architecture

    model = model_of(num_attention_heads=num_heads, num_key_value_heads=num_key_heads)
    is_divisible = num_heads % num_sharing == 0
    if is_divisible and (num_key_heads % num_sharing == 0 or num_sharing % num_key_heads == 0):
        check_architecture(model, num_sharing)
    else:
        with pytest.raises(InputError, match=f"{num_sharing} cannot split {num_heads} attention"):
            check_architecture(model, num_sharing)


def test_a_single_process_with_sequence_parallel_does_not_pack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentworld.train import trainer
    from agentworld.train.model import ATTENTION
    from agentworld.train.packing import PACKED_ATTENTION
    from machines.train_on_sequences import new_trainer

    monkeypatch.setattr(trainer, "packs", lambda _model, packing: packing is not False)
    configs = [
        new_trainer(tmp_path / "dense", packing=None, sequence_parallel=num).model.config
        for num in (None, 2)
    ]
    assert [config._attn_implementation for config in configs] == [PACKED_ATTENTION, ATTENTION]


def test_an_attention_with_dropout_is_refused() -> None:
    import torch

    from agentworld.train.sequence_parallel import SequenceGroup

    model = model_of(num_attention_heads=2, num_key_value_heads=2, attention_dropout=0.5)
    model.to_empty(device="cpu").train().set_attn_implementation(SequenceGroup().attention())
    with pytest.raises(InputError, match="would lose the dropout of .*leave sequence_parallel out"):
        model(input_ids=torch.zeros((1, 4), dtype=torch.long))


def test_a_cpt_step_of_several_processes_has_the_metrics_of_one_process(
    tmp_path: Path,
) -> None:
    inputs = training(tmp_path / "shared", cpt=SHARED)
    run_with_ranks(tmp_path, main, ("cpt", *inputs))
    (folder,) = (path for path in (tmp_path / "shared/steps/cpt").iterdir() if path.is_dir())
    record = checkpoint_of(folder)
    single_record = checkpoint_of(
        Path(run_by_name("cpt", *training(tmp_path / "alone", cpt=SHARED)))
    )
    assert record.recipe["sequence_parallel"] == 2
    assert record.metrics == pytest.approx(single_record.metrics, rel=0.01)
