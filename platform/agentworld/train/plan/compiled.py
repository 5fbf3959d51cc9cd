"""What a compiled layer saves for its backward pass, as torch's partitioner decides."""

from typing import Any

import torch
from functorch.compile import (
    aot_function,
    make_boxed_func,
    min_cut_rematerialization_partition,
)
from torch.func import functional_call
from torch.fx import GraphModule
from torch.nn import Module
from torch.utils._pytree import tree_flatten, tree_unflatten


def bytes_of_compiled(layer: Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> int:
    """The bytes for these arguments, the first of which is the layer's input; all tensors are fake.

    Includes the input, but not weights and what all layers share.
    """
    leaves, shape = tree_flatten((arguments[1:], options))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    weights = {**dict(layer.named_parameters()), **dict(layer.named_buffers())}
    names, num_bytes = list(weights), 0

    def run(hidden: torch.Tensor, *tensors: torch.Tensor) -> Any:
        own, shared = tensors[: len(names)], tensors[len(names) :]
        by_place = dict(zip(places, shared, strict=True))
        whole = [by_place.get(place, leaf) for place, leaf in enumerate(leaves)]
        rest, keywords = tree_unflatten(whole, shape)
        own_by_name = dict(zip(names, own, strict=True))
        return functional_call(layer, own_by_name, (hidden, *rest), keywords)

    def count(graph: GraphModule, _inputs: object) -> Any:
        nonlocal num_bytes
        nodes = list(graph.graph.nodes)
        _output, *saved = nodes[-1].args[0]
        tensors = [
            node.meta["val"] for node in saved if node is nodes[0] or node.op != "placeholder"
        ]
        storages = {tensor.untyped_storage()._cdata: tensor.untyped_storage() for tensor in tensors}
        num_bytes = sum(storage.nbytes() for storage in storages.values())
        return make_boxed_func(graph.forward)

    compiled = aot_function(
        run,
        fw_compiler=count,
        bw_compiler=lambda graph, _inputs: make_boxed_func(graph.forward),
        partition_fn=min_cut_rematerialization_partition,
    )
    hidden = arguments[0].detach().requires_grad_()
    compiled(hidden, *weights.values(), *(leaves[place] for place in places))
    return num_bytes
