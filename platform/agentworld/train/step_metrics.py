"""A training's figures by step: its loss, and how well it uses the device."""

import resource
import time
from collections.abc import Mapping
from typing import NamedTuple, Self

import torch
from transformers import (
    PreTrainedModel,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from agentworld.records.metrics import OnMetrics
from agentworld.train.batches import BatchTokens, TokenBatches
from agentworld.train.distributed import num_ranks
from agentworld.train.packing import mixing_layers
from agentworld.train.zero import num_elements

_NAMES = {"loss": "loss", "learning_rate": "learning_rate", "grad_norm": "gradient_norm"}
_PEAK_FLOPS = {"NVIDIA H100 80GB HBM3": 989e12, "NVIDIA H200": 989e12}
"""Of bfloat16, dense, by the name that CUDA has for a card."""
_GIB = 1 << 30


class StepMetrics(TrainerCallback):
    """Reports what the trainer logs, and the batches of the steps since it last did."""

    def __init__(
        self,
        on_metrics: OnMetrics,
        batches: TokenBatches,
        model: PreTrainedModel,
        accumulation: int,
    ) -> None:
        self._on_metrics = on_metrics
        self._batches = batches
        self._flops = _Flops.of(model)
        self._accumulation = accumulation
        self._last = (0, 0.0)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Starts the clock."""
        self._last = state.global_step, time.perf_counter()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float],
        **_: object,
    ) -> None:
        """Every few steps; at the end the trainer logs a summary without a loss."""
        now = state.global_step, time.perf_counter()
        if "loss" not in logs or now[0] == self._last[0]:
            return
        (first, started), (last, ended) = self._last, now
        self._last = now
        tokens = self._batches.tokens(first * self._accumulation, last * self._accumulation)
        figures = {name: float(logs[key]) for key, name in _NAMES.items() if key in logs}
        figures["padding_share"] = 1 - tokens.num_tokens / tokens.num_computed
        figures["tokens_per_second"] = tokens.num_tokens / (ended - started)
        figures["memory_gib"] = _memory_gib()
        self._on_metrics(last, figures | self._mfu(tokens, ended - started))

    def _mfu(self, tokens: BatchTokens, seconds: float) -> dict[str, float]:
        """By the formula of docs/benchmarks.md, where it holds for the model and the card."""
        peak = _PEAK_FLOPS.get(torch.cuda.get_device_name()) if torch.cuda.is_available() else None
        if peak is None or self._flops is None:
            return {}
        return {"mfu": self._flops.num(tokens) / seconds / peak / num_ranks()}


class _Flops(NamedTuple):
    """What a training computes."""

    by_token: int
    by_token_and_position: int

    @classmethod
    def of(cls, model: PreTrainedModel) -> Self | None:
        """Null for a model with other layers than full attention, and for a mixture of experts."""
        config = model.config
        if mixing_layers(model) or getattr(config, "num_experts", None):
            return None
        # A frozen weight has no gradient of its own.
        weights = [
            (6 if weight.requires_grad else 4) * num_elements(weight)
            for weight in model.parameters()
        ]
        width = config.num_attention_heads * config.head_dim
        return cls(sum(weights), 6 * config.num_hidden_layers * width)

    def num(self, tokens: BatchTokens) -> int:
        """Of these batches."""
        return (
            tokens.num_tokens * self.by_token + tokens.sum_of_squares * self.by_token_and_position
        )


def _memory_gib() -> float:
    """The most so far: of the GPU's tensors, or of this process where there is no GPU."""
    if torch.cuda.is_available():
        return float(torch.cuda.max_memory_allocated()) / _GIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _GIB
