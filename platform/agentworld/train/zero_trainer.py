"""A trainer whose ZeRO checkpoints can be resumed by any number of processes."""

from pathlib import Path
from typing import Any

import torch
from transformers.trainer import SCHEDULER_NAME

from agentworld.train.divergence import FiniteTrainer
from agentworld.train.fragments import load_fragments, save_fragments


class ZeroTrainer(FiniteTrainer):
    """Writes fragments instead of DeepSpeed's checkpoint, which only the same number of processes
    can read. Without a `zero_stage` it is the Trainer.
    """

    zero_stage: int | None = None

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Writes no weights for a checkpoint with ZeRO, because its fragments have them."""
        if self.zero_stage is None or not _internal_call:
            super().save_model(output_dir, _internal_call=_internal_call)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if self.zero_stage is None:
            super()._save_optimizer_and_scheduler(output_dir)
            return
        save_fragments(self, Path(output_dir))
        if self.args.should_save:
            torch.save(self.lr_scheduler.state_dict(), Path(output_dir) / SCHEDULER_NAME)

    def _load_from_checkpoint(
        self, resume_from_checkpoint: str, model: torch.nn.Module | None = None
    ) -> None:
        if self.zero_stage is None:
            super()._load_from_checkpoint(resume_from_checkpoint, model)

    def _prepare_for_training(
        self, max_steps: int, train_dataloader: Any, resume_from_checkpoint: str | None
    ) -> Any:
        """Resumes from fragments; the Trainer would make DeepSpeed read the checkpoint."""
        own = self.zero_stage is None
        model = super()._prepare_for_training(
            max_steps, train_dataloader, resume_from_checkpoint if own else None
        )
        if resume_from_checkpoint and not own:
            checkpoint = Path(resume_from_checkpoint)
            load_fragments(self, checkpoint)
            state = torch.load(checkpoint / SCHEDULER_NAME, weights_only=True)
            self.lr_scheduler.load_state_dict(state)
            # The scheduler sets no rate before its next step, and fragments have none.
            for group, rate in zip(
                self.optimizer.param_groups, self.lr_scheduler.get_last_lr(), strict=True
            ):
                group["lr"] = rate
        return model
