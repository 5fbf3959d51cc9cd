"""The operators around FlashAttention 4, with kernels that this module replaces: they need a GPU.

`tools/gpu_check.sh flash-attention` compares the real ones with torch's attention.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

pytestmark = pytest.mark.compute

ENDS = (0, 5, 6, 23)
LONGEST = 17
SCALE = 0.3


class Kernels(ModuleType):
    """The two functions of the package, computed by torch on any device."""

    def __init__(self) -> None:
        super().__init__("flash_attn.cute.interface")
        self.deterministic: list[bool] = []

    def _flash_attn_fwd(
        self, query: Tensor, key: Tensor, value: Tensor, *, return_lse: bool, **options: Any
    ) -> tuple[Tensor | None, ...]:
        import torch

        assert return_lse
        attended, log_sums = [], []
        for scores, _, _, v in _row_scores(query, key, value, **options):
            attended.append((scores.softmax(-1) @ v).transpose(0, 1))
            log_sums.append(scores.logsumexp(-1))
        return torch.cat(attended).contiguous(), torch.cat(log_sums, -1), None, None, None

    def _flash_attn_bwd(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attended: Tensor,
        gradient: Tensor,
        log_sums: Tensor,
        *,
        deterministic: bool,
        **options: Any,
    ) -> tuple[Tensor, ...]:
        """The gradients by the formulas of FlashAttention (2205.14135, appendix B)."""
        import torch

        self.deterministic.append(deterministic)
        scale, grouped = options["softmax_scale"], (key.size(1), -1)
        parts: list[tuple[Tensor, ...]] = []
        rows = _row_scores(query, key, value, **options)
        for (scores, q, k, v), (start, end) in zip(rows, pairwise(ENDS), strict=True):
            out, of_out = (tensor[start:end].transpose(0, 1) for tensor in (attended, gradient))
            weights = (scores - log_sums[:, start:end, None]).exp()
            of_weights = of_out @ v.mT - (out * of_out).sum(-1, keepdim=True)
            of_scores = weights * of_weights * scale
            of_key, of_value = of_scores.mT @ q, weights.mT @ of_out
            of_groups = (tensor.unflatten(0, grouped).sum(1) for tensor in (of_key, of_value))
            parts.append((of_scores @ k, *of_groups))
        return tuple(torch.cat(tensors, 1).transpose(0, 1) for tensors in zip(*parts, strict=True))


def _row_scores(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    softmax_scale: float,
    causal: bool,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
) -> Iterator[tuple[Tensor, ...]]:
    """Each row's scores with its queries, keys and values, all with as many heads."""
    import torch

    assert causal
    assert cu_seqlens_q.tolist() == cu_seqlens_k.tolist() == list(ENDS)
    assert max_seqlen_q == max_seqlen_k == LONGEST
    for start, end in pairwise(ENDS):
        q, k, v = (tensor[start:end].transpose(0, 1) for tensor in (query, key, value))
        k, v = (tensor.repeat_interleave(len(q) // len(tensor), 0) for tensor in (k, v))
        future = torch.ones(end - start, end - start, dtype=torch.bool).triu(1)
        yield (q @ k.mT * softmax_scale).masked_fill(future, -torch.inf), q, k, v


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Kernels:
    module = Kernels()
    monkeypatch.setitem(sys.modules, "flash_attn.cute.interface", module)
    return module


def inputs() -> tuple[Any, ...]:
    """Four heads of queries and two of keys, as a model's layer makes them."""
    import torch

    torch.manual_seed(0)
    tensors = [
        torch.randn(1, num_heads, ENDS[-1], 8)[0].transpose(0, 1).requires_grad_()
        for num_heads in (4, 2, 2)
    ]
    return (*tensors, torch.tensor(ENDS, dtype=torch.int32), LONGEST, SCALE)


@pytest.mark.usefixtures("kernels")
def test_rows_and_gradients_are_those_of_torchs_attention() -> None:
    import torch

    from agentworld.train.flash_attention import flash_attention
    from agentworld.train.packing import _attend_by_row

    query, key, value, ends, *_ = arguments = inputs()
    attended, _ = flash_attention(*arguments)
    heads_first = [tensor.transpose(0, 1)[None] for tensor in (query, key, value)]
    [expected] = _attend_by_row(*heads_first, SCALE, ends)
    torch.testing.assert_close(attended, expected)
    gradient = torch.randn(attended.shape)
    of_attended = torch.autograd.grad(attended, (query, key, value), gradient)
    of_expected = torch.autograd.grad(expected, (query, key, value), gradient)
    torch.testing.assert_close(of_attended, of_expected)


@pytest.mark.usefixtures("kernels")
def test_the_operators_are_what_they_say_of_shapes_strides_and_gradients() -> None:
    import torch

    from agentworld.train import flash_attention

    *tensors, ends, longest, scale = inputs()
    results = torch.library.opcheck(
        flash_attention.flash_attention, (*tensors, ends, longest, scale)
    )
    assert set(results.values()) == {"SUCCESS"}
    tensors = [tensor.detach() for tensor in tensors]
    output = flash_attention.flash_attention(*tensors, ends, longest, scale)
    gradient = torch.randn(output[0].shape)
    results = torch.library.opcheck(
        flash_attention._gradients, (gradient, *tensors, *output, ends, longest, scale)
    )
    assert set(results.values()) == {"SUCCESS"}


@pytest.mark.usefixtures("kernels")
def test_a_compiled_layer_contains_the_attention() -> None:
    import torch

    from agentworld.train.flash_attention import flash_attention

    def layer(*arguments: Any) -> Tensor:
        return 2 * flash_attention(*arguments)[0]

    arguments = inputs()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*arguments), layer(*arguments))
    gradients = [
        torch.autograd.grad(function(*arguments).sum(), arguments[:3])
        for function in (compiled, layer)
    ]
    torch.testing.assert_close(*gradients)


def test_gradients_are_deterministic_only_if_torch_is_told_so(kernels: Kernels) -> None:
    from agentworld.train.determinism import deterministic_algorithms
    from agentworld.train.flash_attention import flash_attention

    for enabled in (False, True):
        with deterministic_algorithms(enabled=enabled):
            flash_attention(*inputs())[0].sum().backward()
    assert kernels.deterministic == [False, True]


def test_a_package_that_does_not_load_is_an_error_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from agentworld.errors import InputError
    from agentworld.train.flash_attention import flash_attention

    monkeypatch.setitem(sys.modules, "flash_attn", None)
    with pytest.raises(InputError, match=r"does not load: .*flash_attn.*; install 'flash-attn-4"):
        flash_attention(*inputs())


@pytest.mark.parametrize(
    ("installed", "capability", "head_width", "expected"),
    [
        (True, (9, 0), 128, True),
        (True, (10, 0), 64, True),
        (False, (9, 0), 128, False),
        (True, (8, 0), 128, False),
        (True, (12, 0), 128, False),
        (True, (9, 0), 256, False),
    ],
)
def test_the_package_is_used_where_it_runs(
    *,
    monkeypatch: pytest.MonkeyPatch,
    installed: bool,
    capability: tuple[int, int],
    head_width: int,
    expected: bool,
) -> None:
    import torch

    from agentworld.train import flash_attention

    def version(name: str) -> str:
        assert name == "flash-attn-4"
        if not installed:
            raise PackageNotFoundError(name)
        return "4"

    monkeypatch.setattr(flash_attention, "version", version)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: capability)
    flash_attention.has_flash_attention.cache_clear()
    try:
        assert flash_attention.has_flash_attention(0, head_width) is expected
    finally:
        flash_attention.has_flash_attention.cache_clear()


@pytest.mark.parametrize("installed", [True, False])
def test_packed_rows_on_a_gpu_take_the_package_if_it_is_there(
    *, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    from agentworld.train import packing

    calls: list[str] = []

    def attention_named(name: str) -> Callable[..., Any]:
        def attend(query: Tensor, *_: object, **__: object) -> tuple[Tensor, None] | Tensor:
            calls.append(name)
            return (query, None) if name == "flash_attention" else query

        return attend

    monkeypatch.setattr(packing, "has_flash_attention", lambda _device, _width: installed)
    for name in ("flash_attention", "varlen_attn"):
        monkeypatch.setattr(packing, name, attention_named(name))
    query, key, value, ends, longest, scale = inputs()
    attended = packing._attend_on_gpu(query, key, value, scale, ends, longest)
    assert attended is query
    assert calls == ["flash_attention" if installed else "varlen_attn"]
