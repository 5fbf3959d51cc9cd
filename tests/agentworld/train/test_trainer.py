from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentworld.errors import InputError
from agentworld.recipes.train import NextTokenRecipe, WorldRlRecipe
from agentworld.records.progress import ignore_progress
from agentworld.records.sample import Sample
from agentworld.train.parent import Parent
from agentworld.train.resume import CHECKPOINTS
from make.training import TINY

if TYPE_CHECKING:
    from agentworld.train.encode import Row
    from agentworld.train.model import LanguageModel

pytestmark = pytest.mark.compute

RECIPE = NextTokenRecipe(**TINY, stage="cpt", tokens_per_batch=256, epochs=8.0, checkpoint_every=2)


def rows_of(language_model: LanguageModel, samples: list[Sample]) -> list[Row]:
    from agentworld.train.encode import encode, whole_episode

    return list(encode(language_model.tokenizer, map(whole_episode, samples)))


def copy_of(language_model: LanguageModel, folder: Path) -> LanguageModel:
    from agentworld.train.model import load_model

    language_model.save(folder)
    return load_model(Parent(folder))


def test_training_lowers_the_loss(
    language_model: LanguageModel, samples: list[Sample], tmp_path: Path
) -> None:
    from agentworld.train.trainer import train_rows

    rows = rows_of(language_model, samples)
    first_loss = train_rows(language_model, RECIPE, rows, tmp_path / "a", ignore_progress)["loss"]
    longer_recipe = RECIPE.model_copy(update={"epochs": 12.0})
    assert (
        train_rows(language_model, longer_recipe, rows, tmp_path / "b", ignore_progress)["loss"]
        < first_loss
    )


def test_layers_compute_in_bfloat16_and_weights_stay_in_float32(
    language_model: LanguageModel, samples: list[Sample], tmp_path: Path
) -> None:
    import torch

    from agentworld.train.trainer import train_rows

    model, dtypes = copy_of(language_model, tmp_path / "copy"), set()
    layer = model.model.model.layers[0].mlp.up_proj
    layer.register_forward_hook(lambda _layer, _inputs, output: dtypes.add(output.dtype))
    train_rows(model, RECIPE, rows_of(model, samples), tmp_path / "out", ignore_progress)
    assert dtypes == {torch.bfloat16}
    assert layer.weight.dtype == torch.float32


def test_a_diverging_training_stops_without_a_diverged_checkpoint(
    language_model: LanguageModel, samples: list[Sample], tmp_path: Path
) -> None:
    from agentworld.train.trainer import train_rows

    model = copy_of(language_model, tmp_path / "copy")
    rates = {"learning_rate": 1e30, "muon_learning_rate": 1e30, "checkpoint_every": 1}
    with pytest.raises(InputError, match="diverged: at step 2 the norm of the gradient is nan"):
        train_rows(
            model,
            RECIPE.model_copy(update=rates),
            rows_of(model, samples),
            tmp_path / "out",
            ignore_progress,
        )
    assert [path.name for path in (tmp_path / "out" / CHECKPOINTS).iterdir()] == ["checkpoint-1"]


def test_accumulated_batches_train_the_same_weights_as_one_batch(tmp_path: Path) -> None:
    import torch

    from machines.train_in_float32 import train

    folders = ("whole", "by-rows")
    for name in folders:
        (tmp_path / name).mkdir()
        train(tmp_path / name)
    losses, actual = (json.loads((tmp_path / name / "losses.json").read_text()) for name in folders)
    assert actual == pytest.approx(losses, rel=1e-4)
    weights, actual = (torch.load(tmp_path / name / "weights.pt") for name in folders)
    for name, weight in weights.items():
        torch.testing.assert_close(actual[name], weight, rtol=0, atol=1e-3, msg=name)


def test_one_process_trains_on_one_device_even_if_more_are_visible(
    language_model: LanguageModel,
    samples: list[Sample],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from transformers import TrainingArguments

    from agentworld.train.group_rl import group_config
    from agentworld.train.trainer import train_rows

    num_visible = property(lambda self: self.__dict__.get("_n_gpu") or 2)
    monkeypatch.setattr(TrainingArguments, "n_gpu", num_visible)
    rows = rows_of(language_model, samples)
    assert train_rows(language_model, RECIPE, rows, tmp_path / "a", ignore_progress)["steps"] > 0
    assert group_config(WorldRlRecipe(), tmp_path, max_completion_tokens=4).n_gpu == 1


@pytest.mark.parametrize(
    ("family", "settings"),
    [("Granite", {"logits_scaling": 8.0}), ("Gemma2", {"final_logit_softcapping": 0.5})],
)
def test_the_loss_is_that_of_the_logits_that_the_model_computes(
    family: str, settings: dict[str, float], tmp_path: Path
) -> None:
    import torch
    import transformers
    from torch.nn.functional import cross_entropy

    from agentworld.train.model import LanguageModel
    from agentworld.train.trainer import NextTokenTrainer
    from machines.train_in_float32 import RECIPE, compute_in_float32, rows

    sizes = {"vocab_size": 50, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
    config = getattr(transformers, f"{family}Config")(**sizes, **heads, **settings)
    model = getattr(transformers, f"{family}ForCausalLM")(config)
    model.model.embed_tokens.weight.data.normal_()
    trainer = NextTokenTrainer(
        LanguageModel(model, None), RECIPE, rows(), tmp_path, ignore_progress
    )
    compute_in_float32(trainer)
    batch = next(iter(trainer.get_train_dataloader()))
    logits, targets = model(batch["input_ids"]).logits, batch["targets"]
    expected = cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
    loss = trainer.compute_loss(trainer.model, batch, num_items_in_batch=torch.tensor(1))
    torch.testing.assert_close(loss, expected)
