"""The loss on held-out samples, by domain, while a training runs.

It does not affect the training: no gradients, no random numbers, no changes of weights.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from agentworld.records.metrics import OnMetrics
from agentworld.records.sample import Sample
from agentworld.train.batches import TokenBatches
from agentworld.train.distributed import num_ranks
from agentworld.train.encode import Row

VALIDATION_LOSS = "validation_loss"
"""The name of the mean over all tokens; a domain's has a slash and the domain appended."""


class HeldOut(NamedTuple):
    """The held-out rows of the validation loss, and how often it is measured."""

    rows: Mapping[str, Sequence[Row]]
    """Rows by domain."""
    every: int
    """Optimizer steps between measurements."""


def samples_by_domain(samples: Iterable[Sample], most: int) -> dict[str, list[Sample]]:
    """The first samples of each domain, in the order of the pool."""
    by_domain: dict[str, list[Sample]] = {}
    for sample in samples:
        of_domain = by_domain.setdefault(sample.domain, [])
        if len(of_domain) < most:
            of_domain.append(sample)
    return by_domain


class Validation(TrainerCallback):
    """Measures before the first step, every few steps, and after the last one.

    Each process computes its share of every batch, because all must take part in the model's
    communication; the sums are added up over the processes. `share` has the rows of a batch.
    """

    def __init__(
        self,
        held_out: HeldOut,
        tokens_per_batch: int,
        loss_sum: Callable[[list[Row]], tuple[torch.Tensor, int]],
        on_metrics: OnMetrics,
        *,
        packed: bool,
        share: slice,
    ) -> None:
        self._every = held_out.every
        self._loss_sum = loss_sum
        self._on_metrics = on_metrics
        self._share = share
        self._batches = {
            domain: [
                [rows[index] for index in batch]
                for batch in TokenBatches(
                    [len(row.input_ids) for row in rows], tokens_per_batch, 1, 0, packed=packed
                )
            ]
            for domain, rows in sorted(held_out.rows.items())
        }

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """At the start of a training; a resumed training has measured it before."""
        if state.global_step == 0:
            self._measure(0)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """After each optimizer step."""
        if state.global_step % self._every == 0 or state.global_step == state.max_steps:
            self._measure(state.global_step)

    def _measure(self, step: int) -> None:
        sums = torch.stack([self._of_domain(batches) for batches in self._batches.values()])
        if num_ranks() > 1:
            sums = sums.to("cuda" if torch.cuda.is_available() else "cpu")
            dist.all_reduce(sums)
        losses, counts = sums.sum(0).tolist()
        figures = {VALIDATION_LOSS: losses / counts}
        for domain, (loss, count) in zip(self._batches, sums.tolist(), strict=True):
            figures[f"{VALIDATION_LOSS}/{domain}"] = loss / count
        self._on_metrics(step, figures)

    def _of_domain(self, batches: Sequence[list[Row]]) -> torch.Tensor:
        """The summed loss, and the number of targets."""
        total = torch.zeros(2, dtype=torch.float64)
        for batch in batches:
            loss, num_targets = self._loss_sum(batch[self._share])
            total += torch.tensor([loss.item(), num_targets], dtype=torch.float64)
        return total
