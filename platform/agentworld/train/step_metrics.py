"""A training's figures by step: its loss, and its use of the device."""

import resource
import time
from collections.abc import Mapping

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
from agentworld.train.cards import GIB, peak_flops
from agentworld.train.distributed import num_ranks
from agentworld.train.flops import Flops

_NAMES = {"loss": "loss", "learning_rate": "learning_rate", "grad_norm": "gradient_norm"}


def figures_of(logs: Mapping[str, float | None], more_names: dict[str, str]) -> dict[str, float]:
    """The logged figures under our names; a trainer logs null for a mean of nothing."""
    figures = {name: logs.get(key) for key, name in (_NAMES | more_names).items()}
    return {name: float(value) for name, value in figures.items() if value is not None}


def memory_gib() -> float:
    """Peak memory so far: of the GPU's tensors, or of this process without a GPU."""
    if torch.cuda.is_available():
        return float(torch.cuda.max_memory_allocated()) / GIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB


class StepMetrics(TrainerCallback):
    """Reports the logged figures, and the batches of the steps since the last log."""

    def __init__(
        self,
        on_metrics: OnMetrics,
        batches: TokenBatches,
        model: PreTrainedModel,
        accumulation: int,
    ) -> None:
        self._on_metrics = on_metrics
        self._batches = batches
        self._flops = Flops.of(model)
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
        logs: Mapping[str, float | None],
        **_: object,
    ) -> None:
        """Every few steps; at the end the trainer logs a summary without a loss."""
        now = state.global_step, time.perf_counter()
        if "loss" not in logs or now[0] == self._last[0]:
            return
        (first, started), (last, ended) = self._last, now
        self._last = now
        tokens = self._batches.tokens(first * self._accumulation, last * self._accumulation)
        figures = figures_of(logs, {})
        figures["sample_tokens"] = tokens.num_tokens / max(1, tokens.num_rows)
        figures["padding_share"] = 1 - tokens.num_tokens / tokens.num_computed
        figures["tokens_per_second"] = tokens.num_tokens / (ended - started)
        figures["memory_gib"] = memory_gib()
        self._on_metrics(last, figures | self._mfu(tokens, ended - started))

    def _mfu(self, tokens: BatchTokens, seconds: float) -> dict[str, float]:
        """The model FLOPs utilisation by the formula of docs/benchmarks.md, if it is valid for the
        model and the card.
        """
        peak = peak_flops(torch.cuda.get_device_name()) if torch.cuda.is_available() else None
        if peak is None or self._flops is None:
            return {}
        return {
            "mfu": self._flops.num(tokens.num_tokens, tokens.sum_of_squares)
            / seconds
            / peak
            / num_ranks()
        }
