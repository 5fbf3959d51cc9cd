"""Trains a small model twice and writes its weights and losses, in one process or several.

In float32, because in bfloat16 the sums of two halves differ from those of the whole.
"""

import json
import os
import random
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    Qwen3Config,
    Qwen3ForCausalLM,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from agentworld.errors import InputError, Preempted
from agentworld.recipes.train import NextTokenRecipe
from agentworld.records.progress import ignore_progress
from agentworld.train import zero
from agentworld.train.distributed import on_rank_zero, process_group, rank
from agentworld.train.encode import Row
from agentworld.train.model import LanguageModel
from agentworld.train.preemption import train_to_end
from agentworld.train.trainer import NextTokenTrainer
from agentworld.train.zero import gathered

_VOCABULARY = 50
_DIVERGED_AT = 3
_SHARD_BYTES = 20_000
"""Small enough that ZeRO updates the weights in several groups at stage 3."""

# Of a batch's three rows, the second has no target, and long rows are alone in theirs.
_LENGTHS = (20, 20, 20, 60, 60, 20, 20, 20)
RECIPE = NextTokenRecipe(
    stage="cpt",
    tokens_per_batch=72,
    epochs=3,
    learning_rate=1e-2,
    warmup_share=0.4,
    packing=False,
    gradient_checkpointing=False,
)

_SETTINGS: dict[str, dict[str, Any]] = {
    "packed": {"packing": True},
    "accumulated": {"accumulation": 2},
    "unclipped": {"max_gradient_norm": 1e9},
    "optimizer": {"offload": "optimizer"},
    "parameters": {"offload": "parameters"},
    "whole": {"tokens_per_batch": 1_000},
    "rows": {"tokens_per_batch": 1, "accumulation": len(_LENGTHS)},
}
"""By a part of the name of a training's folder."""


def rows() -> list[Row]:
    """Random tokens."""
    rng = random.Random(0)
    return [_row(rng, length, has_target=index % 3 != 1) for index, length in enumerate(_LENGTHS)]


def _row(rng: random.Random, length: int, *, has_target: bool) -> Row:
    ids = [rng.randrange(_VOCABULARY) for _ in range(length)]
    targets = [has_target and rng.random() < 0.4 for _ in range(length)]
    return Row(np.array(ids, dtype=np.int32), np.array(targets, dtype=np.bool_))


def _model() -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 16}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    return Qwen3ForCausalLM(Qwen3Config(vocab_size=_VOCABULARY, **sizes, **heads))


def compute_in_float32(trainer: NextTokenTrainer) -> None:
    """Call it before training; works with DeepSpeed and without."""
    trainer.accelerator.native_amp = False
    if trainer.is_deepspeed_enabled:
        trainer.accelerator.deepspeed_plugin.deepspeed_config["torch_autocast"] = {}


class Steps(TrainerCallback):
    """Counts the steps of this process; before one of them, rank 0 receives SIGTERM."""

    def __init__(self, preempted_at: int | None) -> None:
        self.num = 0
        self._preempted_at = preempted_at

    def on_step_begin(
        self, _args: TrainingArguments, state: TrainerState, _control: TrainerControl, **_: object
    ) -> None:
        self.num += 1
        if state.global_step == self._preempted_at and rank() == 0:
            os.kill(os.getpid(), signal.SIGTERM)


def _recipe(folder: Path) -> NextTokenRecipe:
    """The folder's name selects how batches are formed, and may end in a `zero_stage`."""
    *_, last = words = folder.name.split("-")
    changes: dict[str, Any] = {"zero_stage": int(last) if last.isdigit() else None}
    for word in words:
        changes |= _SETTINGS.get(word, {})
    return RECIPE.model_copy(update=changes)


def train(out: Path, preempted_at: int | None = None) -> None:
    """Twice in one process group, as a new model learns to copy before it trains on episodes."""
    model, losses, steps = _model(), [], Steps(preempted_at)
    for name in ("first", "second"):
        trainer = NextTokenTrainer(
            LanguageModel(model, None),
            _recipe(out),
            rows() if rank() == 0 else [],
            out / name,
            ignore_progress,
        )
        trainer.args.logging_steps = 1
        trainer.add_callback(steps)
        compute_in_float32(trainer)
        try:
            train_to_end(trainer)
        except Preempted:
            return
        losses += [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    (out / f"state-{rank()}").write_text(str(_state_bytes(trainer)))
    (out / "steps").write_text(str(steps.num))
    if trainer.is_deepspeed_enabled:
        (out / "offload.json").write_text(json.dumps(_offload(trainer)))
    on_rank_zero(lambda: (out / "losses.json").write_text(json.dumps(losses)))
    with gathered(model.parameters()):
        on_rank_zero(lambda: torch.save(model.state_dict(), out / "weights.pt"))


class _Diverging(NextTokenTrainer):
    """A training with a step whose loss is NaN; the step is neither logged nor saved."""

    def compute_loss(self, *inputs: Any, **options: Any) -> torch.Tensor:
        loss = super().compute_loss(*inputs, **options)
        return loss * float("nan") if self.state.global_step == _DIVERGED_AT else loss


@process_group()
def diverge_in_each(folders: Sequence[Path]) -> None:
    """Each process writes the result of each folder's training."""
    for folder in folders:
        language_model = LanguageModel(_model(), None)
        own_rows = rows() if rank() == 0 else []
        trainer = _Diverging(language_model, _recipe(folder), own_rows, folder, ignore_progress)
        compute_in_float32(trainer)
        (folder / f"end-{rank()}").write_text(_end_of(trainer))


def _end_of(trainer: NextTokenTrainer) -> str:
    try:
        train_to_end(trainer)
    except InputError as error:
        return str(error)
    return f"step {trainer.state.global_step}"


def _state_bytes(trainer: NextTokenTrainer) -> int:
    """The size of this process's optimizer state; DeepSpeed's wraps ours."""
    optimizer = trainer.optimizer
    while hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    return sum(
        value.nbytes for state in optimizer.state.values() for value in state.values() if value.ndim
    )


def _offload(trainer: NextTokenTrainer) -> list[tuple[str, bool]]:
    """Where DeepSpeed has the optimizer's state and the weights, and whether they are
    page-locked.
    """
    engine = trainer.deepspeed
    offloads = (engine.zero_offload_optimizer(), engine.zero_offload_param())
    return [(part.device, part.pin_memory) for part in offloads if part and part.device != "none"]


@process_group()
def train_in_each(folders: Sequence[Path], preempted_at: int | None = None) -> None:
    """Runs one training after another."""
    zero.SHARD_BYTES = _SHARD_BYTES
    for folder in folders:
        train(folder, preempted_at)
