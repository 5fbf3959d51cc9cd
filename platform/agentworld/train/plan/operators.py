"""Operators with shapes and without content, for those that a CPU or a fake tensor lacks.

They save for the backward pass what the real ones save: FlashAttention its inputs, its output and a
float32 for each query; a multiplication of the experts' matrices its inputs.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from transformers import AttentionInterface
from transformers.integrations.moe import ExpertsInterface

NO_CONTENT = "no_content"
"""Their names for transformers, which would look for a name with `flash` on a hub."""


def _no_content(*_: Tensor) -> Any:
    raise NotImplementedError("it is planned with and never computed")


def _operator(name: str, schema: str) -> Any:
    return torch.library.custom_op(
        f"agentworld::{name}", _no_content, mutates_args=(), schema=schema
    )


_flash = _operator("planned_flash", "(Tensor query, Tensor key, Tensor value) -> (Tensor, Tensor)")
_flash_backward = _operator(
    "planned_flash_backward",
    "(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor attended, Tensor logsumexp)"
    " -> (Tensor, Tensor, Tensor)",
)
_grouped = _operator("planned_grouped", "(Tensor rows, Tensor matrices) -> Tensor")
_grouped_backward = _operator(
    "planned_grouped_backward",
    "(Tensor gradient, Tensor rows, Tensor matrices) -> (Tensor, Tensor)",
)


def _flash_shapes(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG001
    """The output by token, then by head."""
    batch, heads, tokens, _ = query.shape
    attended = query.new_empty(batch, tokens, heads, value.shape[-1]).transpose(1, 2)
    return attended, query.new_empty((batch, heads, tokens), dtype=torch.float32)


def _grouped_shapes(rows: Tensor, matrices: Tensor) -> Tensor:
    """Rows (N, in) by matrices (experts, in, out): each row times the matrix of its expert."""
    return rows.new_empty(rows.shape[0], matrices.shape[2])


def _flash_backward_shapes(gradient: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:  # noqa: ARG001
    return tuple(torch.empty_like(tensor) for tensor in tensors[:3])


def _grouped_backward_shapes(gradient: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:  # noqa: ARG001
    return tuple(torch.empty_like(tensor) for tensor in tensors)


def _keep_all(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs, *output)


def _keep_inputs(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:  # noqa: ARG001
    ctx.save_for_backward(*inputs)


_flash.register_fake(_flash_shapes)
_flash_backward.register_fake(_flash_backward_shapes)
_grouped.register_fake(_grouped_shapes)
_grouped_backward.register_fake(_grouped_backward_shapes)
_flash.register_autograd(
    lambda context, gradient, _: _flash_backward(gradient, *context.saved_tensors),
    setup_context=_keep_all,
)
_grouped.register_autograd(
    lambda context, gradient: _grouped_backward(gradient, *context.saved_tensors),
    setup_context=_keep_inputs,
)


def _attend(
    _layer: Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    _mask: object,
    **_options: object,
) -> tuple[Tensor, None]:
    attended, _ = _flash(query.to(value.dtype), key.to(value.dtype), value)
    return attended.transpose(1, 2), None


def _pass_experts(
    experts: Any, hidden: Tensor, top_k_index: Tensor, top_k_weights: Tensor
) -> Tensor:
    """As `grouped_mm` of transformers, which computes in the type of the weights."""
    num_tokens, num_chosen = top_k_index.shape
    rows = hidden[torch.arange(num_tokens * num_chosen) // num_chosen]
    first = experts.gate_up_proj if experts.has_gate else experts.up_proj
    inner = _grouped(rows.to(first.dtype), _by_input(experts, first))
    inner = experts._apply_gate(inner) if experts.has_gate else experts.act_fn(inner)
    last = experts.down_proj
    out: Tensor = _grouped(inner.to(last.dtype), _by_input(experts, last))
    weighted = out * top_k_weights.reshape(-1, 1)
    return weighted.view(num_tokens, num_chosen, -1).sum(1).to(hidden.dtype)


def _by_input(experts: Any, matrices: Tensor) -> Tensor:
    return matrices if experts.is_transposed else matrices.transpose(1, 2)


AttentionInterface.register(NO_CONTENT, _attend)
ExpertsInterface.register(NO_CONTENT, _pass_experts)
