"""Trains small models on sequences of 2,048 tokens that processes share, and writes the results.

In float32, because in bfloat16 the sums of two parts differ from those of the whole.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from agentworld.errors import Preempted
from agentworld.recipes.train import LoraRecipe, NextTokenRecipe
from agentworld.records.metrics import OnMetrics, ignore_metrics
from agentworld.records.progress import ignore_progress
from agentworld.train.compiling import compile_layers
from agentworld.train.distributed import on_rank_zero, process_group, rank
from agentworld.train.encode import Row
from agentworld.train.model import LanguageModel
from agentworld.train.preemption import train_to_end
from agentworld.train.trainer import NextTokenTrainer
from agentworld.train.validation import HeldOut
from agentworld.train.zero import gathered
from machines.train_in_float32 import Steps, compute_in_float32

_VOCABULARY = 97
_LENGTHS = (2_048, 2_041, 700, 1_300)
"""The lengths of rows in tokens; each batch has two rows."""

RECIPE = NextTokenRecipe(
    stage="cpt",
    tokens_per_batch=4_096,
    epochs=1.5,
    learning_rate=1e-3,
    packing=False,
    gradient_checkpointing=False,
    sequence_parallel=2,
)
_SETTINGS: dict[str, dict[str, Any]] = {
    "dense": {},
    "experts": {},
    "adapter": {"lora": LoraRecipe(rank=4, alpha=8)},
    "muon": {"muon_learning_rate": 0.01},
    "recomputed": {"gradient_checkpointing": True, "accumulation": 2},
    "compiled": {"compile_layers": True},
    "thirds": {"sequence_parallel": 3},
    "quarters": {"sequence_parallel": 4},
    "zero-1": {"zero_stage": 1},
    "zero-2": {"zero_stage": 2},
    "zero-3": {"zero_stage": 3},
}
"""By the name of a training's folder."""


def _rows() -> list[Row]:
    """Random tokens, half of which are targets."""
    rng = np.random.default_rng(0)
    return [
        Row(rng.integers(_VOCABULARY, size=length, dtype=np.int32), rng.random(length) < 0.5)
        for length in _LENGTHS
    ]


def _model(name: str) -> PreTrainedModel:
    """Two layers; there is one key-value head for each process, or heads are repeated."""
    torch.manual_seed(0)
    sizes = {"vocab_size": _VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "head_dim": 8}
    if name == "experts":
        experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
        heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
        return Qwen3MoeForCausalLM(Qwen3MoeConfig(**sizes, **heads, **experts))
    num_heads, num_key_heads = {"thirds": (3, 1), "quarters": (4, 2)}.get(name, (2, 1))
    heads = {"num_attention_heads": num_heads, "num_key_value_heads": num_key_heads}
    return Qwen3ForCausalLM(Qwen3Config(intermediate_size=64, **sizes, **heads))


class _Gradients(TrainerCallback):
    """Writes the gradients of the first step."""

    def __init__(self, out: Path, model: PreTrainedModel) -> None:
        self._out = out
        self._model = model

    def on_pre_optimizer_step(
        self, _args: TrainingArguments, state: TrainerState, _control: TrainerControl, **_: object
    ) -> None:
        if state.global_step == 0 and rank() == 0:
            gradients = {
                name: weight.grad.clone()
                for name, weight in self._model.named_parameters()
                if weight.grad is not None
            }
            torch.save(gradients, self._out / "gradients.pt")


def new_trainer(
    out: Path, on_metrics: OnMetrics = ignore_metrics, **settings: Any
) -> NextTokenTrainer:
    """With the settings that the folder's name selects, and common ones."""
    recipe = RECIPE.model_copy(update=_SETTINGS[out.name] | settings)
    language_model = LanguageModel(_model(out.name), None)
    if recipe.lora:
        language_model = language_model.with_adapter(recipe.lora, 0)
    if recipe.compile_layers:
        compile_layers(language_model.model)
    trainer = NextTokenTrainer(
        language_model,
        recipe,
        _rows() if rank() == 0 else [],
        out,
        ignore_progress,
        on_metrics,
        HeldOut({"shell": _rows()[2:]}, every=3),
    )
    trainer.args.logging_steps = 1
    compute_in_float32(trainer)
    return trainer


def train(out: Path, preempted_at: int | None = None) -> None:
    """Writes metrics, gradients and weights into a folder, whose name selects settings."""
    figures: dict[int, dict[str, float]] = {}
    trainer = new_trainer(out, lambda step, metrics: figures.setdefault(step, {}).update(metrics))
    steps = Steps(preempted_at)
    trainer.add_callback(_Gradients(out, trainer.model))
    trainer.add_callback(steps)
    try:
        train_to_end(trainer)
    except Preempted:
        return
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    validation = [
        metrics["validation_loss"] for metrics in figures.values() if "validation_loss" in metrics
    ]
    text = json.dumps({"losses": losses, "validation": validation})
    on_rank_zero(lambda: (out / "figures.json").write_text(text))
    on_rank_zero(lambda: (out / "steps.json").write_text(str(steps.num)))
    with gathered(trainer.model.parameters()):
        weights = {name: weight.detach() for name, weight in trainer.model.named_parameters()}
        on_rank_zero(lambda: torch.save(weights, out / "weights.pt"))


@process_group()
def train_in_each(folders: Sequence[Path], preempted_at: int | None = None) -> None:
    """Runs one training after another."""
    for folder in folders:
        train(folder, preempted_at)
