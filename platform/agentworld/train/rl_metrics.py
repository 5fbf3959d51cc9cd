"""The figures of group RL by step, as TRL's trainer logs them."""

import time
from collections.abc import Mapping

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from agentworld.records.metrics import OnMetrics
from agentworld.train.reward_figures import REWARD_FIGURES
from agentworld.train.step_metrics import figures_of, memory_gib

_NAMES = {
    "reward": "reward",
    "reward_std": "reward_std",
    "frac_reward_zero_std": "equal_groups",
    "completions/mean_length": "answer_tokens",
    "completions/clipped_ratio": "cut_off_share",
    "entropy": "entropy",
    **{name: name for name in REWARD_FIGURES},
}
_NUM_TOKENS = "num_tokens"
"""Tokens of prompts and answers, of all processes, since the training began."""


class RlMetrics(TrainerCallback):
    """Reports the trainer's logged figures."""

    def __init__(self, on_metrics: OnMetrics) -> None:
        self._on_metrics = on_metrics
        self._last = (0.0, 0.0)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Starts the clock; a resumed training has counted tokens before."""
        self._last = float(state.num_input_tokens_seen), time.perf_counter()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float | None],
        **_: object,
    ) -> None:
        """At each step; at the end the trainer logs a summary without a loss."""
        if "loss" not in logs:
            return
        figures = figures_of(logs, _NAMES)
        now = float(logs[_NUM_TOKENS] or 0), time.perf_counter()
        figures["tokens_per_second"] = (now[0] - self._last[0]) / (now[1] - self._last[1])
        figures["memory_gib"] = memory_gib()
        self._last = now
        self._on_metrics(state.global_step, figures)
