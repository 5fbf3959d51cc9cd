"""An attention with shapes and without content, which keeps what FlashAttention keeps."""

from typing import Any

import torch
from transformers import AttentionInterface

FLASH = "planned"
"""What transformers calls it: one whose name says flash would be looked for on a hub."""
_Tensor = torch.Tensor


def _no_content(*_: _Tensor) -> Any:
    raise NotImplementedError("it is planned with and never computed")


_attend = torch.library.custom_op(
    "agentworld::planned_flash",
    _no_content,
    mutates_args=(),
    schema="(Tensor query, Tensor key, Tensor value) -> (Tensor, Tensor)",
)
_attend_backward = torch.library.custom_op(
    "agentworld::planned_flash_backward",
    _no_content,
    mutates_args=(),
    schema="(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor attended,"
    " Tensor logsumexp) -> (Tensor, Tensor, Tensor)",
)


@_attend.register_fake
def _(query: _Tensor, _key: _Tensor, value: _Tensor) -> tuple[_Tensor, _Tensor]:
    """The output by token, then by head; a float32 for each query."""
    batch, heads, tokens, _ = query.shape
    attended = query.new_empty(batch, tokens, heads, value.shape[-1]).transpose(1, 2)
    return attended, query.new_empty((batch, heads, tokens), dtype=torch.float32)


@_attend_backward.register_fake
def _(_gradient: _Tensor, *kept: _Tensor) -> tuple[_Tensor, ...]:
    return tuple(torch.empty_like(tensor) for tensor in kept[:3])


def _keep(ctx: Any, inputs: tuple[_Tensor, ...], output: tuple[_Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs, *output)


def _backward(context: Any, gradient: _Tensor, _of_logsumexp: _Tensor) -> Any:
    return _attend_backward(gradient, *context.saved_tensors)


_attend.register_autograd(_backward, setup_context=_keep)


def _attend_layer(
    _layer: torch.nn.Module,
    query: _Tensor,
    key: _Tensor,
    value: _Tensor,
    _mask: object,
    **_options: object,
) -> tuple[_Tensor, None]:
    attended, _ = _attend(query.to(value.dtype), key.to(value.dtype), value)
    return attended.transpose(1, 2), None


AttentionInterface.register(FLASH, _attend_layer)
