"""Packing: a batch is one sequence of rows, and each row attends only to itself.

A packed batch has no padding. It needs a model in which only attention mixes tokens: a recurrent or
convolutional layer would carry one row's content into the next row.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np
import torch
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel

from agentworld.errors import InputError
from agentworld.train.batches import NO_ROW
from agentworld.train.encode import Row
from agentworld.train.flash_attention import flash_attention, has_flash_attention

PACKED_ATTENTION = "packed"
"""The name in transformers of the attention for packed rows."""
_FULL = "full_attention"
_OTHER_ATTENTION = ("dropout", "softcap", "s_aux", "sliding_window")
"""Options that transformers passes to an attention and that change its result."""


def pack(rows: Sequence[Row]) -> dict[str, torch.Tensor | int]:
    """`input_ids`, `is_target`, `position_ids` (1, T); the rows' ends are `cu_seq_lens_q` (N+1,).

    The first token of a row is not a target, because the token before it belongs to another row.
    No rows give one row without targets.
    """
    rows = rows or [NO_ROW]
    lengths = [len(row.input_ids) for row in rows]
    ends = list(accumulate(lengths, initial=0))
    input_ids = torch.from_numpy(np.concatenate([row.input_ids for row in rows])).long()
    is_target = torch.from_numpy(np.concatenate([row.is_target for row in rows]))
    is_target[ends[:-1]] = False
    return {
        "input_ids": input_ids[None],
        "is_target": is_target[None],
        "position_ids": torch.cat([torch.arange(length) for length in lengths])[None],
        "cu_seq_lens_q": torch.tensor(ends, dtype=torch.int32),
        "max_length_q": max(lengths),
    }


def packs(model: PreTrainedModel, packing: bool | None) -> bool:
    """Whether to pack rows, given the recipe's setting or none.

    On a CPU padding is faster for short rows: an attention for each row costs more than the
    padding. Raises InputError if the recipe packs rows for a model that would mix them.
    """
    if packing is False or (packing is None and not torch.cuda.is_available()):
        return False
    mixing = mixing_layers(model)
    if mixing and packing:
        raise InputError(
            f"packing: true would mix the samples of a sequence, for {type(model).__name__} has"
            f" layers of {mixing}; set packing to false"
        )
    return not mixing


def mixing_layers(model: PreTrainedModel) -> str:
    """A model's layers other than full attention; empty if there are none."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or [_FULL]) - {_FULL}
    if kinds:
        return ", ".join(sorted(kinds))
    if getattr(config, "sliding_window", None) is not None:
        return "sliding attention"
    return "" if model._supports_attention_backend else "an attention of its own"


def refuse_options(options: Mapping[str, object], subject: str, advice: str) -> None:
    """Raises InputError if a layer needs more than full causal attention."""
    for name in _OTHER_ATTENTION:
        if isinstance(options.get(name), torch.Tensor) or options.get(name):
            raise InputError(f"{subject} would lose the {name} of this model's attention; {advice}")


def _attend(
    _layer: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _mask: None,
    *,
    scaling: float,
    cu_seq_lens_q: torch.Tensor,
    max_length_q: int,
    **options: object,
) -> tuple[torch.Tensor, None]:
    """Causal attention within each row: query (1, H, T, D), key and value (1, K, T, D).

    Raises InputError for an unsupported option.
    """
    refuse_options(options, "packed rows", "set packing to false")
    # Norms of queries and keys return the float32 of their weights.
    query, key = query.to(value.dtype), key.to(value.dtype)
    if not query.is_cuda:
        return _attend_by_row(query, key, value, scaling, cu_seq_lens_q), None
    query, key, value = (tensor[0].transpose(0, 1) for tensor in (query, key, value))
    attended = _attend_on_gpu(query, key, value, scaling, cu_seq_lens_q, max_length_q)
    return attended[None], None


def _attend_on_gpu(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scaling: float,
    ends: torch.Tensor,
    longest: int,
) -> torch.Tensor:
    """The same for query (T, H, D), key and value (T, K, D)."""
    if has_flash_attention(query.device.index, query.size(-1)):
        return flash_attention(query, key, value, ends, longest, scaling)[0]
    return varlen_attn(
        query,
        key,
        value,
        ends,
        ends,
        longest,
        longest,
        scale=scaling,
        window_size=(-1, 0),
        enable_gqa=key.size(1) != query.size(1),
    )


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _attend_by_row(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scaling: float,
    ends: torch.Tensor,
) -> torch.Tensor:
    parts = [
        scaled_dot_product_attention(
            query[:, :, start:end],
            key[:, :, start:end],
            value[:, :, start:end],
            is_causal=True,
            scale=scaling,
            enable_gqa=key.size(1) != query.size(1),
        )
        for start, end in pairwise(ends.tolist())
    ]
    return torch.cat(parts, dim=2).transpose(1, 2)


AttentionInterface.register(PACKED_ATTENTION, _attend)
