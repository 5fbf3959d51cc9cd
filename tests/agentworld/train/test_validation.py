"""The loss on held-out samples during a training, which it does not change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from agentworld.errors import InputError
from agentworld.recipes.train import LoraRecipe, NextTokenRecipe
from agentworld.records.progress import ignore_progress
from agentworld.records.sample import Sample
from agentworld.runner.folders import STAGE_PAGE, checkpoint_of
from agentworld.steps.run import run_by_name
from agentworld.storage.pools import read_dataset
from agentworld.storage.step_figures import read_figures
from machines.forked import run_with_ranks
from make.pools import write_pool
from make.training import TINY, Training, samples, training

if TYPE_CHECKING:
    from agentworld.train.encode import Row
    from agentworld.train.model import LanguageModel

pytestmark = pytest.mark.compute

DROPOUT = {"muon_learning_rate": None, "lora": LoraRecipe(rank=2, dropout=0.5)}


def with_held_out(inputs: Training, *domains: str) -> Training:
    """Adds a held-out pool with all samples in each of these domains."""
    data = Path(inputs.data)
    held_out = [
        sample.model_copy(update={"domain": domain}) for domain in domains for sample in samples()
    ]
    dataset = read_dataset(data)
    pool = write_pool(data / "held_out.parquet", held_out)
    dataset.model_copy(update={"pools": {**dataset.pools, "held_out": pool}}).write(
        data / "dataset.json"
    )
    return inputs


def encode_episodes(language_model: LanguageModel, episodes: list[Sample]) -> list[Row]:
    from agentworld.train.encode import encode, whole_episode

    return list(encode(language_model.tokenizer, map(whole_episode, episodes)))


@pytest.mark.parametrize(
    "settings",
    [{}, {"packing": True}, {"gradient_checkpointing": True}, DROPOUT],
    ids=["padded", "packed", "recomputed", "dropout"],
)
def test_validation_changes_no_trained_weight(
    settings: dict[str, Any], language_model: LanguageModel, tmp_path: Path
) -> None:
    from copy import deepcopy

    import torch

    from agentworld.train.trainer import train_rows
    from agentworld.train.validation import HeldOut

    rows = encode_episodes(language_model, samples())
    recipe = NextTokenRecipe(**TINY | settings, stage="cpt", tokens_per_batch=256, epochs=2)
    weights = []
    for held_out in (None, HeldOut({"shell": rows[:3], "text": rows[3:]}, every=2)):
        model = language_model._replace(model=deepcopy(language_model.model))
        if recipe.lora:
            model = model.with_adapter(recipe.lora, 0)
        torch.manual_seed(0)
        figures: list[dict[str, float]] = []
        train_rows(
            model,
            recipe,
            rows,
            tmp_path / str(held_out is None),
            ignore_progress,
            lambda _step, step_figures, figures=figures: figures.append(dict(step_figures)),
            held_out,
        )
        assert bool(figures) == (held_out is not None)
        weights.append(model.trained.state_dict())
    plain_weights, other_weights = weights
    assert all(torch.equal(weight, other_weights[name]) for name, weight in plain_weights.items())


def test_the_validation_loss_is_the_mean_over_all_targets_of_a_domain(
    language_model: LanguageModel, tmp_path: Path
) -> None:
    import torch
    from torch.nn.functional import cross_entropy

    from agentworld.train.trainer import train_rows
    from agentworld.train.validation import HeldOut

    rows = encode_episodes(language_model, samples())
    by_domain = {"shell": rows[:3], "text": rows[3:8]}
    losses: dict[str, list[float]] = {"shell": [], "text": []}
    for domain, domain_rows in by_domain.items():
        for row in domain_rows:
            ids = torch.from_numpy(row.input_ids).long()[None]
            is_target = torch.from_numpy(row.is_target)[1:]
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
                logits = language_model.model.eval()(ids).logits[0, :-1][is_target].float()
            loss = cross_entropy(logits, ids[0, 1:][is_target], reduction="none")
            losses[domain] += loss.tolist()
    figures: dict[int, dict[str, float]] = {}
    recipe = NextTokenRecipe(**TINY, stage="cpt", tokens_per_batch=256, epochs=1)
    train_rows(
        language_model,
        recipe,
        rows,
        tmp_path,
        ignore_progress,
        lambda step, step_figures: figures.setdefault(step, {}).update(step_figures),
        HeldOut(by_domain, every=4),
    )
    means = {
        f"validation_loss/{name}": sum(values) / len(values) for name, values in losses.items()
    }
    all_losses = losses["shell"] + losses["text"]
    assert figures[0] == pytest.approx(
        {"validation_loss": sum(all_losses) / len(all_losses), **means}, rel=1e-3
    )
    assert list(figures)[1] == 4
    assert figures[max(figures)]["validation_loss"] < figures[0]["validation_loss"]


def test_a_step_records_the_validation_loss_of_each_domain(tmp_path: Path) -> None:
    settings = {"validate_every": 5, "validation_samples": 4}
    inputs = with_held_out(training(tmp_path / "store", sft=settings), "shell", "text")
    folder = Path(run_by_name("sft", *inputs))
    figures = read_figures(folder)
    last_step = int(checkpoint_of(folder).metrics["steps"])
    measured_steps = [step for step, row in figures.items() if "validation_loss" in row]
    assert measured_steps == sorted({*range(0, last_step + 1, 5), last_step})
    for step in measured_steps:
        assert {"validation_loss/shell", "validation_loss/text"} <= figures[step].keys()
    assert figures[last_step]["validation_loss"] < figures[0]["validation_loss"]
    page = (folder / STAGE_PAGE).read_text()
    assert "Finished." in page
    assert (
        f"Validation loss by domain: validation_loss/shell {figures[0]['validation_loss']:.3g}"
        in page
    )
    # Both domains have the same samples, and each sample counts equally.
    assert figures[last_step]["validation_loss/shell"] == figures[last_step]["validation_loss/text"]


@pytest.mark.parametrize("zero_stage", [None, 3])
def test_several_processes_measure_the_same_validation_loss_as_one(
    zero_stage: int | None, tmp_path: Path
) -> None:
    from agentworld.steps.member import main

    settings = {"validate_every": 1, "muon_learning_rate": None, "epochs": 1}
    if zero_stage:
        settings["zero_stage"] = zero_stage
    figures_of_runs = []
    for name in ("alone", "distributed"):
        inputs = with_held_out(training(tmp_path / name, cpt=settings), "shell", "text")
        if name == "alone":
            run_by_name("cpt", *inputs)
        else:
            run_with_ranks(Path(inputs.store), main, ("cpt", *inputs))
        (folder,) = (path for path in Path(inputs.store, "steps/cpt").iterdir() if path.is_dir())
        figures_of_runs.append(read_figures(folder))
    single, distributed = figures_of_runs
    assert single.keys() == distributed.keys()
    assert len(single) > 2
    for step, figures in single.items():
        expected = {name: value for name, value in figures.items() if "validation" in name}
        actual = {name: value for name, value in distributed[step].items() if "validation" in name}
        # Processes compute other batches in bfloat16; after the first step gradients differ too.
        assert actual == pytest.approx(expected, rel=2e-2 if step else 1e-3), step


def test_a_data_set_without_held_out_samples_is_refused(tmp_path: Path) -> None:
    inputs = with_held_out(training(tmp_path / "store", cpt={"validate_every": 5}))
    with pytest.raises(InputError, match=r"cpt\.validate_every needs held-out samples"):
        run_by_name("cpt", *inputs)


def test_recipes_without_validation_keep_their_digests_and_imitation_refuses_validation() -> None:
    fields = NextTokenRecipe(stage="cpt").model_dump()
    assert not {"validate_every", "validation_samples"} & fields.keys()
    with pytest.raises(ValidationError, match="imitation has no held-out samples"):
        NextTokenRecipe(stage="imitation", validate_every=5)


def test_step_figures_ignore_a_cut_off_line_and_replace_repeated_steps(
    tmp_path: Path,
) -> None:
    from agentworld.storage.step_figures import FIGURES, StepFigures

    assert read_figures(tmp_path) == {}
    StepFigures(tmp_path).add(20, {"loss": 3.0})
    StepFigures(tmp_path).add(40, {"loss": 2.0})
    with (tmp_path / FIGURES).open("a") as file:
        file.write("\n" + json.dumps({"step": 60, "loss": 1.0})[:-4])
    resumed_figures = StepFigures(tmp_path)
    resumed_figures.add(40, {"loss": 2.5})
    resumed_figures.add(40, {"validation_loss": 4.0})
    assert read_figures(tmp_path) == {20: {"loss": 3.0}, 40: {"loss": 2.5, "validation_loss": 4.0}}
