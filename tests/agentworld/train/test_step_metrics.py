"""Figures of a training by step, and their way to MLflow."""

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
    *("padding_share", "tokens_per_second", "memory_gib"),
}


@pytest.mark.parametrize("packing", [False, True])
def test_every_few_steps_are_reported_with_the_batches_that_they_had(
    language_model: LanguageModel, samples: list[Sample], tmp_path: Path, *, packing: bool
) -> None:
    from agentworld.train.encode import encode, whole_episode
    from agentworld.train.trainer import train_rows

    seen: dict[int, Mapping[str, float]] = {}
    rows = list(encode(language_model.tokenizer, map(whole_episode, samples)))
    recipe = NextTokenRecipe(
        **TINY | {"packing": packing}, stage="cpt", tokens_per_batch=256, epochs=16
    )
    train_rows(language_model, recipe, rows, tmp_path, ignore_progress, seen.__setitem__)
    assert list(seen) == [*range(20, 20 * len(seen) + 1, 20)]
    assert len(seen) > 1
    for figures in seen.values():
        assert figures.keys() == FIGURES
        assert (figures["padding_share"] == 0) == packing
        assert figures["padding_share"] < 0.2
        assert figures["tokens_per_second"] > 0


def test_tokens_of_batches_are_counted_with_and_without_their_padding() -> None:
    from agentworld.train.batches import TokenBatches

    padded = TokenBatches([3, 8, 9], 32, 1.0, 0)
    assert padded.tokens(0, 1) == (20, 48, 9 + 64 + 81) or len(padded) > 1
    packed = TokenBatches([3, 8, 9], 32, 1.0, 0, packed=True)
    assert packed.tokens(0, 1) == (20, 20, 9 + 64 + 81)
    assert packed.tokens(1, 2) == (0, 0, 0)


def test_a_training_has_one_run_in_mlflow_and_needs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    sft = {"epochs": 16}
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{free_port()}")
    without = checkpoint_of(Path(run_by_name("sft", *training(tmp_path / "without", sft=sft))))
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    store = training(tmp_path / "with", sft=sft)
    made = Path(run_by_name("sft", *store))
    assert checkpoint_of(made) == without

    (made / "receipt.json").unlink()
    run_by_name("sft", *store)
    client = mlflow.MlflowClient(uri, uri)
    experiment = client.get_experiment_by_name("agentworld")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.run_name == f"sft/{made.name}"
    assert run.info.status == "FINISHED"
    assert run.data.metrics.keys() == FIGURES
    steps = {metric.step for metric in client.get_metric_history(run.info.run_id, "loss")}
    assert steps == {*range(20, 20 * len(steps) + 1, 20)}
