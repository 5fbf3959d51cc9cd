"""Counts what a forward pass saves for the backward pass, without allocating memory.

The model consists of torch's fake tensors, which have shapes and no content. Its forward pass runs
as in training, and `saved_tensors_hooks` get each tensor that autograd saves. For a compiled layer,
torch's partitioner decides what is saved.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import Module, Parameter
from transformers import PreTrainedModel

from agentworld.train.plan.architecture import layers_of
from agentworld.train.plan.compiled import bytes_of_compiled


class Activations(NamedTuple):
    """Bytes that one process saves for a batch."""

    inputs: int
    """The inputs of all layers, which are all that gradient checkpointing saves of them."""
    layers: int
    """Everything that the layers save, with their inputs."""
    largest: int
    """What the layer with the most saved tensors saves in addition to its input."""
    rest: int
    """What is saved before and after the layers, without the loss."""


def count_activations(model: PreTrainedModel, num_tokens: int, *, is_compiled: bool) -> Activations:
    """The bytes of one batch; without an attention matrix, they grow linearly with the tokens.

    Changes the model, which is on the meta device.
    """
    model.train()
    nums = _leave_one_of_each_kind(model)
    with FakeTensorMode():
        _make_fake(model)
        count = _Count(model)
        input_ids = torch.zeros((1, num_tokens), dtype=torch.long)
        with torch.autocast("cpu", torch.bfloat16):
            with count.counting():
                model.model(input_ids=input_ids, use_cache=False)
            if is_compiled:
                count.compile()
    layers = [(num, count.inputs[layer], count.saved[layer]) for layer, num in nums.items()]
    return Activations(
        inputs=sum(num * inputs for num, inputs, _ in layers),
        layers=sum(num * saved for num, _, saved in layers),
        largest=max(saved - inputs for _, inputs, saved in layers),
        rest=count.saved[model],
    )


def _leave_one_of_each_kind(model: PreTrainedModel) -> dict[Module, int]:
    """Removes all layers except the first of each kind; returns how many each kind had."""
    layers, kinds = layers_of(model), dict[object, list[int]]()
    for place, layer in enumerate(layers):
        shapes = tuple((name, weight.shape) for name, weight in layer.named_parameters())
        kinds.setdefault(shapes, []).append(place)
    first = [places[0] for places in kinds.values()]
    remaining = [layers[place] for place in first]
    if getattr(model.config, "layer_types", None):
        model.config.layer_types = [model.config.layer_types[place] for place in first]
    model.config.num_hidden_layers = len(remaining)
    del layers[:]
    layers.extend(remaining)
    nums = [len(places) for places in kinds.values()]
    return dict(zip(remaining, nums, strict=True))


def _make_fake(model: PreTrainedModel) -> None:
    """Gives a model on the meta device fake tensors of a CPU, where autocast works."""
    fake: dict[torch.Tensor, torch.Tensor] = {}
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is None:
                    continue
                if tensor not in fake:  # an output layer may be the embedding
                    empty = torch.empty(tensor.shape, dtype=tensor.dtype)
                    is_weight = isinstance(tensor, Parameter)
                    fake[tensor] = Parameter(empty, tensor.requires_grad) if is_weight else empty
                tensors[name] = fake[tensor]


class _Count:
    """Adds up what autograd saves, by layer."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.saved: dict[Module, int] = {model: 0, **dict.fromkeys(layers_of(model), 0)}
        self.inputs: dict[Module, int] = {}
        self._arguments: dict[Module, tuple[tuple[Any, ...], dict[str, Any]]] = {}
        self._model = self._module = model
        self._tensors = {_storage(weight): weight for weight in model.parameters()}
        """All tensors, so that no storage is freed and its address reused."""

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Counts while the block runs."""
        hooks = [
            hook
            for layer in layers_of(self._model)
            for hook in (
                layer.register_forward_pre_hook(self._enter, with_kwargs=True),
                layer.register_forward_hook(self._leave),
            )
        ]
        with saved_tensors_hooks(self._keep, lambda tensor: tensor):
            yield
        for hook in hooks:
            hook.remove()

    def compile(self) -> None:
        """Replaces the counts of the layers by those of compiled layers."""
        for layer, (arguments, options) in self._arguments.items():
            self.saved[layer] = bytes_of_compiled(layer, arguments, options)

    def _enter(self, layer: Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        self._module = layer
        self.inputs[layer] = arguments[0].nbytes
        self._arguments[layer] = arguments, options

    def _leave(self, *_: object) -> None:
        self._module = self._model

    def _keep(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = _storage(tensor)
        if storage not in self._tensors:
            self._tensors[storage] = tensor
            self.saved[self._module] += tensor.untyped_storage().nbytes()
        return tensor


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
