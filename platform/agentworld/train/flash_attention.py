"""FlashAttention 4 for packed rows, where the package `flash-attn-4` is installed.

torch's own attention for packed rows is FlashAttention 2, which on a Hopper GPU is half as fast.
The kernels are custom operators here, because `torch.compile` cannot trace them.
"""

from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

import torch

from agentworld.errors import InputError

_GPUS = (9, 10)
"""The major compute capabilities of Hopper and Blackwell; for others the kernels lack a part."""
_WIDEST_HEAD = 128


@cache
@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def has_flash_attention(device: int, head_width: int) -> bool:
    """Whether the package is installed and can run on a GPU, given by its index."""
    try:
        version("flash-attn-4")
    except PackageNotFoundError:
        return False
    return head_width <= _WIDEST_HEAD and torch.cuda.get_device_capability(device)[0] in _GPUS


@torch.library.custom_op("agentworld::flash_attention", mutates_args=())  # type: ignore[untyped-decorator]
def flash_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    ends: torch.Tensor,
    longest: int,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Causal attention within each row: query (T, H, D), key and value (T, K, D), ends (N+1,).

    Returns it (T, H, D), and the logarithms of the softmax's sums (H, T) for the gradients.
    """
    attended, log_sums, *_ = _kernels()._flash_attn_fwd(
        query, key, value, softmax_scale=scale, return_lse=True, **_row_arguments(ends, longest)
    )
    return attended, log_sums


@flash_attention.register_fake  # type: ignore[untyped-decorator]
def _shapes(
    query: torch.Tensor, _key: Any, _value: Any, _ends: Any, _longest: int, _scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    num_tokens, num_heads, _ = query.shape
    return query.new_empty(query.shape), query.new_empty(num_heads, num_tokens, dtype=torch.float32)


@torch.library.custom_op("agentworld::flash_attention_gradients", mutates_args=())  # type: ignore[untyped-decorator]
def _gradients(
    gradient: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attended: torch.Tensor,
    log_sums: torch.Tensor,
    ends: torch.Tensor,
    longest: int,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    of_query, of_key, of_value = _kernels()._flash_attn_bwd(
        query,
        key,
        value,
        attended,
        gradient,
        log_sums,
        softmax_scale=scale,
        deterministic=torch.are_deterministic_algorithms_enabled(),
        **_row_arguments(ends, longest),
    )
    return of_query.contiguous(), of_key.contiguous(), of_value.contiguous()


@_gradients.register_fake  # type: ignore[untyped-decorator]
def _gradient_shapes(
    _gradient: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return query.new_empty(query.shape), key.new_empty(key.shape), value.new_empty(value.shape)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    query, key, value, ends, ctx.longest, ctx.scale = inputs
    ctx.save_for_backward(query, key, value, *output, ends)


def _backward(ctx: Any, gradient: torch.Tensor, _: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    gradients = _gradients(gradient, *ctx.saved_tensors, ctx.longest, ctx.scale)
    return (*gradients, None, None, None)


flash_attention.register_autograd(_backward, setup_context=_save)


def _row_arguments(ends: torch.Tensor, longest: int) -> dict[str, Any]:
    """The kernels' arguments for causal attention within each row."""
    arguments = {"cu_seqlens_q": ends, "cu_seqlens_k": ends, "causal": True}
    return arguments | {"max_seqlen_q": longest, "max_seqlen_k": longest}


def _kernels() -> ModuleType:
    # torch's FA4 takes these two functions, too. It knows only the package's oldest versions.
    try:
        return import_module("flash_attn.cute.interface")
    except ImportError as error:
        raise InputError(
            f"flash-attn-4 is installed but does not load: {error}; install 'flash-attn-4[cu13]'"
            " for a torch with CUDA 13, or uninstall it"
        ) from error
