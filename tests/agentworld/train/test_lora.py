"""Adapters of low rank: training, saving and loading."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from agentworld.engine.adapter import ADAPTER, has_adapter
from agentworld.errors import InputError
from agentworld.recipes.train import LoraRecipe, ModelRecipe, NextTokenRecipe
from agentworld.records.base import digest_file
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.progress import ignore_progress
from agentworld.records.sample import Sample
from agentworld.runner.folders import model_of
from agentworld.steps.member import main
from agentworld.steps.run import run_by_name
from agentworld.train.parent import Parent
from machines.forked import run_with_ranks
from make import training
from make.training import TINY

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from agentworld.train.encode import Row
    from agentworld.train.model import LanguageModel

pytestmark = pytest.mark.compute

WEIGHTS = "model.safetensors"
BOUND = 1e-3
"""For logits, whose largest are about 10: merging adds in another order."""
_MESSAGES = [{"role": "user", "content": "echo kolu"}]
LORA = LoraRecipe(rank=4, alpha=8)
RECIPE = NextTokenRecipe(
    **TINY | {"muon_learning_rate": None},
    stage="cpt",
    tokens_per_batch=256,
    epochs=2,
    checkpoint_every=2,
    lora=LORA,
)


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.fixture(params=["Qwen3", "Qwen3Moe", "Qwen3_5"])
def any_family(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    from make.model import tiny_family

    return tiny_family(tmp_path / "base", request.param)


@pytest.fixture
def parent(language_model: LanguageModel, tmp_path: Path) -> Parent:
    language_model.save(tmp_path / "parent")
    return Parent(tmp_path / "parent")


def with_adapter(parent: Parent, lora: LoraRecipe = LORA) -> LanguageModel:
    from agentworld.train.model import load_model

    return load_model(parent).with_adapter(lora, seed=0)


def rows_of(language_model: LanguageModel, samples: list[Sample]) -> list[Row]:
    from agentworld.train.encode import encode, whole_episode

    return list(encode(language_model.tokenizer, map(whole_episode, samples)))


def train_adapter(
    parent: Parent, samples: list[Sample], out: Path, **settings: Any
) -> LanguageModel:
    from agentworld.train.trainer import train_rows

    language_model = with_adapter(parent)
    rows = rows_of(language_model, samples)
    recipe = RECIPE.model_copy(update=settings)
    train_rows(language_model, recipe, rows, out, ignore_progress)
    return language_model


def logits_of(model: PreTrainedModel) -> torch.Tensor:
    import torch

    with torch.no_grad():
        logits: torch.Tensor = model.eval()(input_ids=torch.arange(40)[None]).logits
    return logits


def test_only_the_adapter_is_trained_and_saving_preserves_the_logits(
    any_family: Path, samples: list[Sample], tmp_path: Path
) -> None:
    import torch

    from agentworld.train.model import load_model

    base = load_model(Parent(any_family)).model
    base_weights = {name: weight.clone() for name, weight in base.named_parameters()}
    adapted_model = train_adapter(Parent(any_family), samples, tmp_path / "out")
    frozen_weights = {
        name.replace(".base_layer", ""): weight
        for name, weight in adapted_model.model.named_parameters()
        if "lora_" not in name
    }
    assert frozen_weights.keys() == base_weights.keys()
    assert all(weight.grad is None for weight in frozen_weights.values())
    assert all(torch.equal(weight, base_weights[name]) for name, weight in frozen_weights.items())

    logits, base_logits = logits_of(adapted_model.model), logits_of(base)
    assert (logits - base_logits).abs().max() > 1e-2
    adapted_model.save(tmp_path / "kept")
    torch.testing.assert_close(logits_of(adapted_model.model), base_logits, rtol=0, atol=0)
    saved_model = load_model(Parent(tmp_path / "kept")).model
    torch.testing.assert_close(logits_of(saved_model), logits, rtol=0, atol=BOUND)
    assert all(weight.requires_grad for weight in saved_model.parameters())


def test_a_merged_model_has_the_logits_of_its_adapter(
    parent: Parent, samples: list[Sample], tmp_path: Path
) -> None:
    import torch

    adapted_model = train_adapter(parent, samples, tmp_path / "out")
    logits = logits_of(adapted_model.model)
    merged_model = adapted_model.merged()
    assert merged_model.merged() is merged_model
    torch.testing.assert_close(logits_of(merged_model.model), logits, rtol=0, atol=BOUND)
    merged_model.save(tmp_path / "merged")
    names = [
        {path.name for path in folder.iterdir()} for folder in (tmp_path / "merged", parent[0])
    ]
    assert names[0] == names[1]


def test_checkpoints_hold_only_the_adapter_and_a_resumed_training_ends_the_same(
    parent: Parent, samples: list[Sample], tmp_path: Path
) -> None:
    import torch

    from agentworld.train.trainer import train_rows

    def kill(done: int, _total: int) -> None:
        if done == 5:
            raise Killed

    killed_model = with_adapter(parent, LORA.model_copy(update={"dropout": 0.1}))
    rows = rows_of(killed_model, samples)
    with pytest.raises(Killed):
        train_rows(killed_model, RECIPE, rows, tmp_path / "b", kill)
    (checkpoint,) = (tmp_path / "b/checkpoints").glob("checkpoint-4")
    assert {path.name for path in checkpoint.glob("*.safetensors")} == {"adapter_model.safetensors"}
    states = torch.load(checkpoint / "optimizer.pt")["state"].values()
    num_trained = sum(p.numel() for p in killed_model.model.parameters() if p.requires_grad)
    assert sum(state["exp_avg"].numel() for state in states) == num_trained

    digests = []
    for out in ("a", "b"):
        language_model = with_adapter(parent, LORA.model_copy(update={"dropout": 0.1}))
        train_rows(language_model, RECIPE, rows, tmp_path / out, ignore_progress)
        language_model.save(tmp_path / f"{out}-model")
        digests.append(ArtifactManifest.of(tmp_path / f"{out}-model").digest)
    assert digests[0] == digests[1]


def test_packing_chunked_loss_and_recomputation_preserve_the_adapters_gradients(
    parent: Parent, samples: list[Sample]
) -> None:
    import torch

    from agentworld.train.batches import collate
    from agentworld.train.loss import loss_sum
    from agentworld.train.packing import PACKED_ATTENTION, pack

    language_model = with_adapter(parent)
    model, rows = language_model.model, rows_of(language_model, samples)
    for name, weight in model.named_parameters():
        if "lora_B" in name:  # zero at first, so that lora_A would have no gradient
            torch.nn.init.normal_(weight, std=0.02)

    def gradients(batches: list[dict[str, Any]], most_logits: int) -> dict[str, torch.Tensor]:
        model.zero_grad()
        for batch in batches:
            is_target = batch.pop("is_target")[:, 1:]
            hidden = model.model(**batch, use_cache=False).last_hidden_state[:, :-1][is_target]
            targets = batch["input_ids"][:, 1:][is_target]
            loss_sum(hidden, model.lm_head, targets, most_logits).backward()
        weights = model.named_parameters()
        return {name: w.grad.clone() for name, w in weights if w.grad is not None}

    separate_gradients = gradients([collate([row]) for row in rows], 2**28)
    language_model.trained.gradient_checkpointing_enable({"use_reentrant": False})
    model.set_attn_implementation(PACKED_ATTENTION)
    model.train()
    packed_gradients = gradients([pack(rows)], 16 * model.lm_head.out_features)
    assert packed_gradients.keys() == separate_gradients.keys()
    assert all("lora_" in name for name in packed_gradients)
    for name, gradient in separate_gradients.items():
        torch.testing.assert_close(packed_gradients[name], gradient, rtol=1e-4, atol=1e-4)


def test_an_adapter_trains_with_packing_accumulation_and_gradient_checkpointing(
    parent: Parent, samples: list[Sample], tmp_path: Path
) -> None:
    import torch

    settings = {"packing": True, "accumulation": 2, "gradient_checkpointing": True}
    adapted_model = train_adapter(
        parent, samples, tmp_path / "out", tokens_per_batch=128, **settings
    )
    lora_weights = [w for name, w in adapted_model.model.named_parameters() if "lora_B" in name]
    assert len(lora_weights) == 7
    assert all(torch.count_nonzero(weight) for weight in lora_weights)


def test_unsupported_target_modules_are_refused_by_name(parent: Parent) -> None:
    lora = LoraRecipe(target_modules=("q_proj", "lm_head"))
    with pytest.raises(InputError, match=r"names lm_head, .*choose from down_proj, gate_proj, k_"):
        with_adapter(parent, lora)


def test_an_unmerged_adapter_is_refused_for_gated_delta_layers(tmp_path: Path) -> None:
    from make.model import tiny_family

    parent = Parent(tiny_family(tmp_path / "base", "Qwen3_5"))
    with pytest.raises(InputError, match=r"layers of linear_attention, .*set lora.merge to true"):
        with_adapter(parent, LoraRecipe(merge=False))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"stage": "imitation"}, "imitation trains all weights, .*leave lora out"),
        ({"stage": "sft", "muon_learning_rate": 0.02}, "set muon_learning_rate to null, or leave"),
    ],
)
def test_an_adapter_is_refused_in_imitation_and_with_muon(
    settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        NextTokenRecipe.model_validate({**settings, "lora": {}})


def test_a_recipe_without_an_adapter_keeps_its_digest() -> None:
    assert "lora" not in NextTokenRecipe(stage="cpt").model_dump()


def test_an_adapter_is_refused_for_a_new_model(tmp_path: Path) -> None:
    from agentworld.train import next_token

    with pytest.raises(InputError, match=r"cpt.lora would freeze the random weights .*leave cpt"):
        next_token.run(RECIPE, ModelRecipe(), tmp_path, None, tmp_path / "out", ignore_progress)


def test_the_adapter_is_saved_in_its_own_folder_without_local_paths(
    parent: Parent, samples: list[Sample], tmp_path: Path
) -> None:
    train_adapter(parent, samples, tmp_path / "out").save(tmp_path / "kept")
    assert has_adapter(tmp_path / "kept")
    config = (tmp_path / "kept" / ADAPTER / "adapter_config.json").read_text()
    assert str(tmp_path) not in config


@pytest.mark.long
def test_two_processes_at_zero_stage_3_train_the_same_adapter_as_one(
    tmp_path: Path,
) -> None:
    import torch
    from safetensors.torch import load_file

    from make.model import tiny_family

    base = tiny_family(tmp_path / "base", "Qwen3")
    lora = {"rank": 4, "alpha": 8, "merge": False}
    cpt = {"muon_learning_rate": None, "epochs": 2, "zero_stage": 3, "lora": lora}
    inputs_by_run = [
        training.training(
            tmp_path / name,
            model={"base": str(base)},
            cpt={**cpt, "gradient_checkpointing": name == "two"},
        )
        for name in ("one", "two")
    ]
    single_model = model_of(Path(run_by_name("cpt", *inputs_by_run[0])))
    run_with_ranks(tmp_path, main, ("cpt", *inputs_by_run[1]))
    (step_folder,) = (path for path in (tmp_path / "two/steps/cpt").iterdir() if path.is_dir())
    assert digest_file(model_of(step_folder) / WEIGHTS) == digest_file(single_model / WEIGHTS)
    tensors, sharded_tensors = (
        load_file(model / ADAPTER / "adapter_model.safetensors")
        for model in (single_model, model_of(step_folder))
    )
    assert tensors.keys() == sharded_tensors.keys()
    for name, tensor in tensors.items():
        # Layers compute in bfloat16, and each process has half of the rows.
        torch.testing.assert_close(sharded_tensors[name], tensor, rtol=0, atol=2e-3, msg=name)
