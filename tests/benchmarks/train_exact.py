"""Results that optimizations of training must not change: losses, gradients, and weights after a
resume.
"""

from contextlib import suppress
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from agentworld.records.progress import OnProgress, ignore_progress
from agentworld.train.encode import Row
from agentworld.train.model import LanguageModel
from agentworld.train.packing import PACKED_ATTENTION, pack
from agentworld.train.trainer import train_rows
from benchmarks.train_kinds import RECIPE, new_model, packed_batches, rows

_KILLED_AFTER = 3
_FEW_ROWS = 100


class Killed(Exception):
    """Represents the death of the process."""


def padding_share() -> float:
    """The share of padding tokens in packed batches."""
    batches, own_rows = packed_batches(), rows()
    total = sum(
        pack([own_rows[index] for index in batch])["input_ids"].numel() for batch in batches
    )
    return 1 - sum(len(row.input_ids) for row in own_rows) / total


def packing_differences() -> tuple[float, float]:
    """The differences of the loss and the gradient, packed against one row at a time, in
    float32.
    """
    model, own_rows = new_model(), rows()[:8]
    model.set_attn_implementation(PACKED_ATTENTION)
    loss, gradient = _loss_and_gradient(model, [own_rows])
    single_loss, single_gradient = _loss_and_gradient(model, [[row] for row in own_rows])
    return abs(loss - single_loss) / single_loss, (
        (gradient - single_gradient).norm() / single_gradient.norm()
    ).item()


def resume_differences(folder: Path) -> int:
    """The number of weights that differ between a resumed training and an uninterrupted one."""
    uninterrupted = _weights(folder / "whole", ignore_progress)
    with suppress(Killed):
        _weights(folder / "killed", _kill)
    resumed = _weights(folder / "killed", ignore_progress)
    return sum(not torch.equal(weight, resumed[name]) for name, weight in uninterrupted.items())


def _kill(done: int, _total: int) -> None:
    if done == _KILLED_AFTER:
        raise Killed


def _weights(out: Path, on_progress: OnProgress) -> dict[str, torch.Tensor]:
    model, recipe = new_model(), RECIPE.model_copy(update={"checkpoint_every": 2})
    train_rows(LanguageModel(model, None), recipe, rows()[:_FEW_ROWS], out, on_progress)
    return model.state_dict()


def _loss_and_gradient(
    model: torch.nn.Module, batches: list[list[Row]]
) -> tuple[float, torch.Tensor]:
    model.zero_grad()
    total = 0.0
    for batch in batches:
        inputs = pack(batch)
        is_target = inputs.pop("is_target")[:, 1:]
        logits = model(**inputs, use_cache=False).logits[:, :-1][is_target]
        loss = cross_entropy(logits, inputs["input_ids"][:, 1:][is_target], reduction="sum")
        loss.backward()
        total += loss.item()
    return total, torch.cat([weight.grad.flatten() for weight in model.parameters()])
