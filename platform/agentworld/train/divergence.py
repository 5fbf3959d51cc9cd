"""A trainer that stops if its weights become NaN or infinite, and writes no such checkpoint."""

import math
from typing import Any

import torch
from transformers import Trainer

from agentworld.errors import InputError


class FiniteTrainer(Trainer):
    """Checks the norm of the gradient before it logs and before it saves; with ZeRO at each step.

    A loss, a gradient or a weight that is not finite makes each later gradient NaN, so none is
    missed. The Trainer itself would leave such losses out of its log and continue.
    """

    def _maybe_log_save_evaluate(
        self,
        tr_loss: torch.Tensor,
        grad_norm: torch.Tensor | float | None,
        *arguments: Any,
        **options: Any,
    ) -> None:
        # DeepSpeed skips a step whose gradient is not finite, and the next gradient may be finite.
        if self.control.should_log or self.control.should_save or self.is_deepspeed_enabled:
            self._check_finite(grad_norm)
        super()._maybe_log_save_evaluate(tr_loss, grad_norm, *arguments, **options)

    def _check_finite(self, grad_norm: torch.Tensor | float | None) -> None:
        norm = 0.0 if grad_norm is None else float(grad_norm)
        if not math.isfinite(norm):
            raise InputError(
                f"the training diverged: at step {self.state.global_step} the norm of the gradient"
                f" is {norm}; lower learning_rate, or look for what is odd in the data of the steps"
                " before"
            )
