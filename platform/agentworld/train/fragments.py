"""A training's state in fragments, which any number of processes can resume.

A fragment is a range of a flattened weight, with the same range of AdamW's moments. Each process
writes what it has under ZeRO into a file of its own. To resume, each process reads the ranges that
it has now, from all files; none holds more than its part.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import Trainer

from agentworld.train.distributed import num_ranks, rank

_FILES = "fragments-*.safetensors"
_WEIGHT = "weight"
_MOMENTS = ("exp_avg", "exp_avg_sq")
_STEP = "step"
"""The number of AdamW's steps; the same for all weights."""


class _Fragment(NamedTuple):
    """A range of a weight that this process trains."""

    name: str
    """The weight's name."""
    start: int
    """The range's first element in the flattened weight."""
    trained: torch.Tensor
    """The tensor that the optimizer updates, which may have ranges of several weights."""
    place: slice
    """The range in that tensor, flattened."""

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The range in a tensor of the same shape."""
        return tensor.detach().view(-1)[self.place]


def save_fragments(trainer: Trainer, checkpoint: Path) -> None:
    """Writes this process's fragments."""
    states = _optimizer(trainer).state
    tensors: dict[str, torch.Tensor] = {}
    metadata: dict[str, str] = {}
    for fragment in _fragments(trainer):
        state = states[fragment.trained]
        tensors[f"{_WEIGHT}/{fragment.name}"] = fragment.of(fragment.trained)
        tensors |= {f"{kind}/{fragment.name}": fragment.of(state[kind]) for kind in _MOMENTS}
        metadata |= {_STEP: str(int(state[_STEP])), fragment.name: str(fragment.start)}
    checkpoint.mkdir(parents=True, exist_ok=True)
    name = _FILES.replace("*", f"{rank() + 1:05}-of-{num_ranks():05}")
    save_file(tensors, checkpoint / name, metadata=metadata)


def load_fragments(trainer: Trainer, checkpoint: Path) -> None:
    """Reads this process's fragments into the weights and the state of the optimizer."""
    stored = _StoredFragments(checkpoint)
    states = _optimizer(trainer).state
    zero: Any = trainer.deepspeed.optimizer if trainer.is_deepspeed_enabled else None
    stage = trainer.deepspeed.zero_optimization_stage() if zero else None
    if stage == 3:
        zero.checkpoint_event_prologue()  # releases the weights that are gathered
    for fragment in _fragments(trainer):
        state = states[fragment.trained]
        if not state:
            state |= {kind: torch.zeros_like(fragment.trained) for kind in _MOMENTS}
            state[_STEP] = torch.tensor(float(stored.step), device=fragment.trained.device)
        for kind in _MOMENTS:
            stored.read(kind, fragment, fragment.of(state[kind]))
        stored.read(_WEIGHT, fragment, fragment.of(fragment.trained))
    if stage == 3:
        for group in range(len(zero.fp16_groups)):
            zero._reassign_or_swap_out_partitioned_parameters(group)
        zero.checkpoint_event_epilogue()
    elif stage:
        zero.update_lp_params()


class _StoredFragments:
    """The fragments of all processes that wrote a checkpoint."""

    def __init__(self, checkpoint: Path) -> None:
        self._files: dict[str, list[tuple[int, Any]]] = {}
        for path in sorted(checkpoint.glob(_FILES)):
            file: Any = safe_open(path, framework="pt")
            metadata = file.metadata() or {}
            self.step = int(metadata.pop(_STEP))
            for name, start in metadata.items():
                self._files.setdefault(name, []).append((int(start), file))

    def read(self, kind: str, fragment: _Fragment, out: torch.Tensor) -> None:
        """Copies a range of a weight, or of a moment, from the files that have parts of it."""
        num_read = 0
        for start, file in self._files[fragment.name]:
            stored = file.get_slice(f"{kind}/{fragment.name}")
            (length,) = stored.get_shape()
            first = max(start, fragment.start)
            last = min(start + length, fragment.start + len(out))
            if first < last:
                part = stored[first - start : last - start]
                out[first - fragment.start : last - fragment.start].copy_(part)
                num_read += last - first
        assert num_read == len(out), f"{fragment.name} is not whole"


def _optimizer(trainer: Trainer) -> torch.optim.Optimizer:
    """The optimizer inside the wrappers of Accelerate and DeepSpeed."""
    optimizer = trainer.optimizer
    while hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    return optimizer


def _fragments(trainer: Trainer) -> Iterator[_Fragment]:
    """The fragments of the trained weights; a process may have nothing of a weight."""
    weights = [item for item in trainer.model.named_parameters() if item[1].requires_grad]
    if not trainer.is_deepspeed_enabled:
        for name, weight in weights:
            yield _Fragment(name, 0, weight, slice(0, weight.numel()))
        return
    zero = trainer.deepspeed.optimizer
    for name, weight in weights:
        if trainer.deepspeed.zero_optimization_stage() == 3:
            group, first, length = zero.grad_position[zero.get_param_id(weight)]
            start = length * rank()
            # The last process's range is padded to the length of the others.
            last = first + min(length, max(0, weight.ds_numel - start))
            trained = zero.fp32_partitioned_groups_flat[group]
        elif weight._hp_mapping is not None:
            mapping = weight._hp_mapping
            start, first = mapping.lp_fragment_address.start, mapping.hp_fragment_address.start
            last = first + mapping.lp_fragment_address.numel
            trained = zero.single_partition_of_fp32_groups[mapping.param_group_index]
        else:
            continue
        if first < last:
            yield _Fragment(name, start, trained, slice(first, last))
