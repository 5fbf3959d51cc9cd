"""Figures of a training by step, and their export to MLflow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentworld.engine.process import free_port
from agentworld.recipes.train import NextTokenRecipe
from agentworld.records.progress import ignore_progress
from agentworld.records.sample import Sample
from agentworld.runner.folders import checkpoint_of
from agentworld.steps.run import run_by_name
from make.training import TINY, training

if TYPE_CHECKING:
    from agentworld.train.model import LanguageModel

pytestmark = pytest.mark.compute

FIGURES = {
    *("loss", "learning_rate", "gradient_norm"),
    *("sample_tokens", "padding_share", "tokens_per_second", "memory_gib"),
}


@pytest.mark.parametrize("packing", [False, True])
def test_training_figures_are_reported_every_20_steps(
    language_model: LanguageModel, samples: list[Sample], tmp_path: Path, *, packing: bool
) -> None:
    from agentworld.train.encode import encode, whole_episode
    from agentworld.train.trainer import train_rows

    figures_by_step: dict[int, Mapping[str, float]] = {}
    rows = list(encode(language_model.tokenizer, map(whole_episode, samples)))
    recipe = NextTokenRecipe(
        **TINY | {"packing": packing}, stage="cpt", tokens_per_batch=256, epochs=16
    )
    train_rows(language_model, recipe, rows, tmp_path, ignore_progress, figures_by_step.__setitem__)
    assert list(figures_by_step) == [*range(20, 20 * len(figures_by_step) + 1, 20)]
    assert len(figures_by_step) > 1
    for figures in figures_by_step.values():
        assert figures.keys() == FIGURES
        assert (figures["padding_share"] == 0) == packing
        assert figures["padding_share"] < 0.2
        assert figures["tokens_per_second"] > 0
        lengths = [len(row.input_ids) for row in rows]
        assert min(lengths) <= figures["sample_tokens"] <= max(lengths)


def test_tokens_of_batches_are_counted_with_and_without_their_padding() -> None:
    from agentworld.train.batches import TokenBatches

    squares = 9 + 64 + 81
    padded_batches, packed_batches = (
        TokenBatches([3, 8, 9], 64, 1.0, 0, packed=is_packed) for is_packed in (False, True)
    )
    assert padded_batches.tokens(0, 1) == (20, 48, squares, 3)
    assert packed_batches.tokens(0, 1) == (20, 20, squares, 3)
    assert packed_batches.tokens(1, 2) == (0, 0, 0, 0)


@pytest.mark.parametrize("has_adapter", [False, True])
def test_mfu_of_a_known_gpu_follows_the_benchmark_formula(
    language_model: LanguageModel, monkeypatch: pytest.MonkeyPatch, *, has_adapter: bool
) -> None:
    from transformers import TrainerControl, TrainerState

    from agentworld.recipes.train import LoraRecipe
    from agentworld.train.batches import TokenBatches
    from agentworld.train.step_metrics import StepMetrics

    model = language_model.model
    if has_adapter:
        language_model.with_adapter(LoraRecipe(rank=1), seed=0)
    num_frozen = sum(weight.numel() for weight in model.parameters() if not weight.requires_grad)
    assert (num_frozen > 0) == has_adapter
    weight_flops = 6 * language_model.num_parameters - 2 * num_frozen
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "NVIDIA H200")
    monkeypatch.setattr("torch.cuda.max_memory_allocated", lambda: 3 << 30)
    clock = iter([10.0, 12.0])
    monkeypatch.setattr("agentworld.train.step_metrics.time.perf_counter", lambda: next(clock))
    figures: dict[str, float] = {}
    batches = TokenBatches([3, 8, 9], 64, 1.0, 0)
    metrics = StepMetrics(
        lambda _step, step_figures: figures.update(step_figures), batches, model, 1
    )
    state, control = TrainerState(), TrainerControl()
    metrics.on_train_begin(None, state, control)
    state.global_step = 1
    metrics.on_log(None, state, control, {"loss": 1.0})
    attention_flops = 6 * 1 * 2 * 8 * (9 + 64 + 81)  # one layer of two heads of eight
    assert figures["mfu"] == pytest.approx((20 * weight_flops + attention_flops) / 2 / 989e12)
    assert figures["tokens_per_second"] == 10
    assert figures["memory_gib"] == 3
    assert figures["sample_tokens"] == pytest.approx(20 / 3)


def test_a_training_has_one_mlflow_run_and_succeeds_without_mlflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    sft = {"epochs": 16}
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{free_port()}")
    checkpoint = checkpoint_of(Path(run_by_name("sft", *training(tmp_path / "without", sft=sft))))
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    inputs = training(tmp_path / "with", sft=sft)
    step_folder = Path(run_by_name("sft", *inputs))
    assert checkpoint_of(step_folder) == checkpoint

    (step_folder / "receipt.json").unlink()
    run_by_name("sft", *inputs)
    client = mlflow.MlflowClient(uri, uri)
    experiment = client.get_experiment_by_name("agentworld")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.run_name == f"sft/{step_folder.name}"
    assert run.info.status == "FINISHED"
    machine_metrics = {name for name in run.data.metrics if name.startswith("system/")}
    assert {
        "system/cpu_utilization_percentage",
        "system/network_receive_megabytes",
    } <= machine_metrics
    assert run.data.metrics.keys() - machine_metrics == FIGURES
    steps = {metric.step for metric in client.get_metric_history(run.info.run_id, "loss")}
    assert steps == {*range(20, 20 * len(steps) + 1, 20)}
