"""Muon for the matrices inside the layers and AdamW for the rest, as one optimizer.

Muon: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import AdamW, Muon, Optimizer
from transformers import PreTrainedModel

from agentworld.recipes.train import NextTokenRecipe
from agentworld.train.muon import BatchedMuon


class MuonAndAdamW(Optimizer):
    """Two optimizers whose parameter groups a scheduler sees as one list."""

    def __init__(self, muon: Muon, adamw: AdamW) -> None:
        self._parts: tuple[Optimizer, ...] = (muon, adamw)
        super().__init__([p for part in self._parts for p in _weights(part)], defaults={})
        # the same dictionaries, so that a scheduler's new rate reaches both optimizers
        self.param_groups = [group for part in self._parts for group in part.param_groups]

    def step(self, _closure: Callable[[], float] | None = None) -> None:
        """One step of each part."""
        for part in self._parts:
            part.step()

    def state_dict(self) -> dict[str, Any]:
        """The states of both parts."""
        return {"parts": [part.state_dict() for part in self._parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the states of both parts."""
        for part, state in zip(self._parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self.param_groups = [group for part in self._parts for group in part.param_groups]


def make_optimizer(model: PreTrainedModel, recipe: NextTokenRecipe) -> Optimizer:
    """AdamW alone if there is no rate for Muon."""
    of_adamw: dict[str, Any] = {
        "lr": recipe.learning_rate,
        "betas": recipe.adam_betas,
        "weight_decay": recipe.weight_decay,
        "fused": torch.cuda.is_available() or None,
    }
    if recipe.muon_learning_rate is None:
        trained = [weight for weight in model.parameters() if weight.requires_grad]
        return AdamW(trained, **of_adamw)
    parts: tuple[list[torch.Tensor], list[torch.Tensor]] = ([], [])
    for name, weight in model.named_parameters():
        parts[is_for_muon(name, weight)].append(weight)
    rest, inside = parts
    return MuonAndAdamW(
        BatchedMuon(inside, lr=recipe.muon_learning_rate, weight_decay=recipe.weight_decay),
        AdamW(rest, **of_adamw),
    )


def is_for_muon(name: str, weight: torch.Tensor) -> bool:
    """Whether Muon trains a weight if a recipe has a rate for it: matrices in the layers."""
    return ".layers." in name and weight.ndim == 2


def _weights(optimizer: Optimizer) -> list[torch.Tensor]:
    return [weight for group in optimizer.param_groups for weight in group["params"]]
