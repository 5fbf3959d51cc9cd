"""torch's Muon that orthogonalizes all matrices of one shape together.

A small model has many small matrices. One matrix at a time leaves most of a processor idle;
together they take half the time.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch


class BatchedMuon(torch.optim.Muon):
    """Takes the steps of `torch.optim.Muon`, and keeps its state."""

    def step(self, _closure: object = None) -> None:
        """Takes one step; a weight without a gradient stays unchanged."""
        with torch.no_grad():
            for group in self.param_groups:
                self._step(group)

    def _step(self, group: dict[str, Any]) -> None:
        by_shape: dict[tuple[int, ...], list[torch.Tensor]] = defaultdict(list)
        for weight in group["params"]:
            if weight.grad is not None:
                by_shape[tuple(weight.shape)].append(weight)
        for (rows, columns), weights in by_shape.items():
            update = orthogonalize(self._update(weights, group), group)
            rate = group["lr"] * math.sqrt(max(1, rows / columns))
            torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(weights, update.float().unbind(), alpha=-rate)

    def _update(self, weights: Sequence[torch.Tensor], group: dict[str, Any]) -> torch.Tensor:
        """Nesterov's momentum of these weights, stacked."""
        gradients = [weight.grad for weight in weights]
        for weight in weights:
            if "momentum_buffer" not in self.state[weight]:
                self.state[weight]["momentum_buffer"] = torch.zeros_like(weight)
        momenta = [self.state[weight]["momentum_buffer"] for weight in weights]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        return torch.stack(torch._foreach_lerp(gradients, momenta, group["momentum"]))


def orthogonalize(
    update: torch.Tensor, group: dict[str, Any], dtype: torch.dtype = torch.bfloat16
) -> torch.Tensor:
    """Newton-Schulz iteration on matrices (N, rows, columns), computed in `dtype`."""
    a, b, c = group["ns_coefficients"]
    is_tall = update.size(1) > update.size(2)
    x = (update.mT if is_tall else update).to(dtype)
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=group["eps"])
    for _ in range(group["ns_steps"]):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if is_tall else x
