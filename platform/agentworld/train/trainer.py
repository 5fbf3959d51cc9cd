"""The trainer of everything with a next-token loss: CPT, SFT and imitation."""

from collections.abc import Iterator, Sequence
from itertools import islice
from math import ceil
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from transformers import (
    PreTrainedModel,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from agentworld.recipes.train import NextTokenRecipe
from agentworld.records.metrics import OnMetrics, ignore_metrics
from agentworld.records.progress import OnProgress
from agentworld.train.batches import (
    NO_TARGET,
    Rows,
    ShareOfBatches,
    TokenBatches,
    collate,
    to_next_tokens,
)
from agentworld.train.compiling import compile_layers
from agentworld.train.deal_rows import deal_rows, share_lengths
from agentworld.train.determinism import deterministic_algorithms
from agentworld.train.distributed import num_ranks, rank
from agentworld.train.encode import Row
from agentworld.train.loss import has_plain_logits, loss_sum
from agentworld.train.model import ATTENTION, LanguageModel
from agentworld.train.optimizer import make_optimizer
from agentworld.train.packing import PACKED_ATTENTION, pack, packs
from agentworld.train.preemption import train_to_end
from agentworld.train.resume import CHECKPOINTS
from agentworld.train.sequence_parallel import SequenceGroup
from agentworld.train.step_metrics import StepMetrics
from agentworld.train.validation import HeldOut, Validation
from agentworld.train.zero import computing, on_one_device
from agentworld.train.zero_trainer import ZeroTrainer

_PROBE_TOKENS = 8
Batch = dict[str, torch.Tensor]
"""A batch of `collate` or `pack`, with `targets`; a process's part if sequences are shared."""


class TrainerProgress(TrainerCallback):
    """Reports the progress of a training."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """After each optimizer step."""
        self._on_progress(state.global_step, state.max_steps)


class NextTokenTrainer(ZeroTrainer):
    """Batches by tokens, with a loss over target tokens only. Rank 0 has the rows."""

    def __init__(
        self,
        language_model: LanguageModel,
        recipe: NextTokenRecipe,
        rows: Sequence[Row],
        out: Path,
        on_progress: OnProgress,
        on_metrics: OnMetrics = ignore_metrics,
        held_out: HeldOut | None = None,
    ) -> None:
        group = SequenceGroup(recipe.sequence_parallel)
        self._group = group
        # A single process does not pack either: batches do not depend on the number of processes.
        self._packed = recipe.sequence_parallel is None and packs(
            language_model.model, recipe.packing
        )
        language_model.model.set_attn_implementation(self._attention())
        lengths = share_lengths(rows)
        batches = TokenBatches(
            lengths, recipe.tokens_per_batch, recipe.epochs, recipe.seed, packed=self._packed
        )
        shares = [
            ShareOfBatches(batches, number, group.num_groups) for number in range(group.num_groups)
        ]
        self._batches = shares[group.group_of(rank())]
        own_rows = deal_rows(rows, lengths, lambda other: shares[group.group_of(other)].numbers)
        self._recipe = recipe
        self.zero_stage = recipe.zero_stage
        self._causal_lm = language_model.model
        super().__init__(
            model=language_model.trained,
            args=_arguments(recipe, ceil(len(batches) / recipe.accumulation), out / CHECKPOINTS),
            train_dataset=Rows(own_rows),
            callbacks=[
                TrainerProgress(on_progress),
                StepMetrics(on_metrics, batches, language_model.model, recipe.accumulation),
            ],
        )
        if held_out:
            validation = Validation(
                held_out,
                recipe.tokens_per_batch,
                self._validate,
                on_metrics,
                packed=self._packed,
                share=slice(group.group_of(rank()), None, group.num_groups),
            )
            self.add_callback(validation)
        self.model_accepts_loss_kwargs = True  # the loss below is already divided
        self._computes_targets_only = num_ranks() == 1 and self._has_plain_logits()

    def get_train_dataloader(self) -> DataLoader[Row]:
        """Batches by tokens instead of by rows."""
        return DataLoader(
            self.train_dataset,
            batch_sampler=self._batches,
            collate_fn=self._collate,
        )

    def create_optimizer(self, model: PreTrainedModel | None = None) -> torch.optim.Optimizer:
        """Muon and AdamW."""
        self.optimizer = make_optimizer(self.model, self._recipe)
        return self.optimizer

    def get_batch_samples(
        self,
        epoch_iterator: Iterator[dict[str, torch.Tensor]],
        num_batches: int,
        device: torch.device,
    ) -> tuple[list[dict[str, torch.Tensor]], torch.Tensor]:
        """The batches of a step, and the number of targets of all processes in them."""
        batches = list(islice(epoch_iterator, num_batches))
        num_targets = sum(map(_num_targets, batches), torch.tensor(0))
        num_targets = num_targets.to(device)
        if num_ranks() > 1:
            dist.all_reduce(num_targets)
        return batches, num_targets.clamp(min=1)

    def compute_loss(
        self,
        model: PreTrainedModel,
        inputs: Batch,
        *,
        num_items_in_batch: torch.Tensor,
        **_: object,
    ) -> torch.Tensor:
        """Cross-entropy over the targets of a batch, divided by the step's number of targets.

        Processes are averaged later, so each one's part is multiplied by their number.
        """
        targets = inputs.pop("targets")  # (B, T)
        is_target = targets != NO_TARGET
        truth = targets[is_target]
        if self._computes_targets_only:
            loss = self._loss_sum(inputs, is_target, truth)
        else:
            loss = self._loss_sum_of_forward(model, inputs, is_target, truth)
        return loss * num_ranks() / num_items_in_batch

    def floating_point_ops(self, _inputs: Batch) -> int:
        """0: the Trainer would count the weights at each step; `StepMetrics` computes the MFU."""
        return 0

    def _attention(self) -> str:
        """The name in transformers of the attention for these batches."""
        if self._group.num_processes > 1:
            return self._group.attention()
        return PACKED_ATTENTION if self._packed else ATTENTION

    def _collate(self, rows: list[Row]) -> dict[str, torch.Tensor | int]:
        batch = pack(rows) if self._packed else collate(rows)
        return self._group.part_of(to_next_tokens(batch))

    def _validate(self, rows: list[Row]) -> tuple[torch.Tensor, int]:
        """The summed loss of held-out rows, and the number of their targets."""
        batch = self._prepare_inputs(self._collate(rows))
        num_targets = int(_num_targets(batch))
        model = self.model_wrapped
        model.eval()
        # A forward pass alone would make compiled layers compile again.
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            loss = self.compute_loss(model, batch, num_items_in_batch=torch.tensor(num_ranks()))
        model.train()
        return loss, num_targets

    def _has_plain_logits(self) -> bool:
        ids = np.arange(_PROBE_TOKENS, dtype=np.int32)
        batch = self._prepare_inputs(self._collate([Row(ids, ids > 0)]))
        batch.pop("targets")
        self._causal_lm.eval()  # dropout would draw random numbers
        with (
            torch.no_grad(),
            torch.compiler.set_stance("force_eager"),
            self.accelerator.autocast(),
        ):
            return has_plain_logits(self._causal_lm, batch)

    def _loss_sum(
        self, inputs: Batch, is_target: torch.Tensor, truth: torch.Tensor
    ) -> torch.Tensor:
        """Computes logits of targets only."""
        # The Trainer applies mixed precision to `model.forward`, which is not called here.
        with self.accelerator.autocast():
            hidden = self._causal_lm.model(**inputs).last_hidden_state[is_target]
            return loss_sum(hidden, self._causal_lm.lm_head, truth)

    def _loss_sum_of_forward(
        self,
        model: torch.nn.Module,
        inputs: Batch,
        is_target: torch.Tensor,
        truth: torch.Tensor,
    ) -> torch.Tensor:
        """Calls the model's own forward, which scales or caps logits in some models, and
        synchronises gradients in a wrapped one. It computes logits of whole columns.
        """
        columns = is_target.any(dim=0).nonzero().squeeze(1)
        logits = model(**inputs, logits_to_keep=columns).logits  # (B, columns, V)
        return cross_entropy(logits[is_target[:, columns]].float(), truth, reduction="sum")


def _num_targets(batch: Batch) -> torch.Tensor:
    return (batch["targets"] != NO_TARGET).sum()


def train_rows(
    language_model: LanguageModel,
    recipe: NextTokenRecipe,
    rows: Sequence[Row],
    out: Path,
    on_progress: OnProgress,
    on_metrics: OnMetrics = ignore_metrics,
    held_out: HeldOut | None = None,
) -> dict[str, float]:
    """Trains in place, from the newest complete checkpoint in `out` if there is one."""
    if recipe.compile_layers:
        compile_layers(language_model.model)
    trainer = NextTokenTrainer(language_model, recipe, rows, out, on_progress, on_metrics, held_out)
    with deterministic_algorithms(enabled=recipe.deterministic):
        train_to_end(trainer)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return {"steps": float(trainer.state.global_step), "loss": losses[-1] if losses else 0.0}


def _arguments(recipe: NextTokenRecipe, steps: int, out: Path) -> TrainingArguments:
    arguments = TrainingArguments(
        output_dir=str(out),
        max_steps=steps,
        warmup_steps=round(steps * recipe.warmup_share),
        lr_scheduler_type="warmup_stable_decay",
        lr_scheduler_kwargs={
            "num_decay_steps": round(steps * recipe.decay_share),
            "min_lr_ratio": 0.05,
            "decay_type": "linear",
        },
        **computing(recipe.zero_stage, in_bfloat16=True, offload=recipe.offload),
        gradient_accumulation_steps=recipe.accumulation,
        max_grad_norm=recipe.max_gradient_norm,
        gradient_checkpointing=recipe.gradient_checkpointing,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        save_steps=recipe.checkpoint_every,
        save_total_limit=2,
        logging_steps=20,
        seed=recipe.seed,
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        label_names=[],
        ddp_find_unused_parameters=False,  # all weights are used in each loss
    )
    return on_one_device(arguments)
