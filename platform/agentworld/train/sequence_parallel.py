"""Sequence parallelism: several processes share each sequence, each with a part of its tokens.

In an attention they exchange tokens for heads, so that each attends over the whole sequence with
some of the heads, and then back (DeepSpeed-Ulysses, https://arxiv.org/abs/2309.14509). All other
layers compute each token alone. Losses and gradients are sums over tokens, so that those of all
processes together are those of one.
"""

import torch
import torch.distributed as dist
from torch.distributed._functional_collectives import all_to_all_single
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel

from agentworld.errors import InputError
from agentworld.train.batches import NO_TARGET
from agentworld.train.distributed import num_ranks, rank
from agentworld.train.packing import mixing_layers, refuse_options

_ATTENTION = "sequence_parallel"
"""The name in transformers of the attention of shared sequences."""
_HEADS, _TOKENS = 1, 2
"""Dimensions of queries, keys and values (B, H, T, D)."""


class SequenceGroup:
    """The processes that share each of this process's sequences; by default it is alone.

    They have consecutive ranks. All processes construct it together.
    """

    def __init__(self, num_processes: int | None = None) -> None:
        self.num_processes = (num_processes or 1) if num_ranks() > 1 else 1
        self._processes: dist.ProcessGroup | None = None
        if self.num_processes > 1:
            self._processes, _ = dist.new_subgroups(self.num_processes)

    @property
    def num_groups(self) -> int:
        """The number of groups of all processes."""
        return num_ranks() // self.num_processes

    def group_of(self, other: int) -> int:
        """The number of the group that a rank is in."""
        return other // self.num_processes

    def attention(self) -> str:
        """The name under which transformers finds the attention of this group."""
        AttentionInterface.register(_ATTENTION, self._attend)
        return _ATTENTION

    def part_of(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """This process's tokens of `input_ids` and `targets` (B, T), with their positions."""
        if self.num_processes == 1:
            return batch
        num_tokens = batch["input_ids"].size(1)
        length = -(-num_tokens // self.num_processes)
        missing = length * self.num_processes - num_tokens
        first = length * (rank() % self.num_processes)
        part = slice(first, first + length)
        return {
            "input_ids": pad(batch["input_ids"], (0, missing))[:, part],
            "targets": pad(batch["targets"], (0, missing), value=NO_TARGET)[:, part],
            "position_ids": torch.arange(first, first + length)[None],
        }

    def _attend(
        self,
        _layer: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        _mask: None,
        *,
        scaling: float,
        **options: object,
    ) -> tuple[torch.Tensor, None]:
        """Causal attention: query (B, H, T / N, D), key and value (B, K, T / N, D).

        Raises InputError for an unsupported option.
        """
        refuse_options(options, "sequences shared by processes", "leave sequence_parallel out")
        # Norms of queries and keys return the float32 of their weights.
        query, key = query.to(value.dtype), key.to(value.dtype)
        num_copies = self.num_processes // key.size(_HEADS)
        if num_copies > 1:
            key, value = (heads.repeat_interleave(num_copies, _HEADS) for heads in (key, value))
        query, key, value = (
            self._exchange(tensor, _HEADS, _TOKENS) for tensor in (query, key, value)
        )
        attended = scaled_dot_product_attention(
            query,
            key,
            value,
            is_causal=True,
            scale=scaling,
            enable_gqa=key.size(_HEADS) != query.size(_HEADS),
        )
        return self._exchange(attended, _TOKENS, _HEADS).transpose(_HEADS, _TOKENS), None

    def _exchange(self, tensor: torch.Tensor, split: int, join: int) -> torch.Tensor:
        """Splits a dimension over the processes, and joins their parts in another one."""
        parts = torch.stack(tensor.chunk(self.num_processes, split))
        received = all_to_all_single(parts, None, None, self._processes)
        return torch.cat(received.unbind(), join)


def check_processes(num_sharing: int | None, num_processes: int) -> None:
    """Raises InputError if the processes cannot be divided into groups.

    A single process trains alone, whatever the recipe says.
    """
    if num_sharing and num_processes > 1 and num_processes % num_sharing:
        raise InputError(
            f"sequence_parallel {num_sharing} does not divide {num_processes}, the number of"
            f" processes; start a multiple of {num_sharing} processes, or set sequence_parallel to"
            f" a divisor of {num_processes}"
        )


def check_architecture(model: PreTrainedModel, num_sharing: int | None) -> None:
    """Raises InputError for a model that would compute otherwise with parts of a sequence."""
    if not num_sharing:
        return
    name = type(model).__name__
    if mixing := mixing_layers(model):
        raise InputError(
            f"sequence_parallel {num_sharing} needs full attention in all layers, and {name} has"
            f" layers of {mixing}; leave sequence_parallel out"
        )
    config = model.config.get_text_config()
    num_heads = config.num_attention_heads
    num_key_heads = getattr(config, "num_key_value_heads", None) or num_heads
    if num_heads % num_sharing or (num_key_heads % num_sharing and num_sharing % num_key_heads):
        raise InputError(
            f"sequence_parallel {num_sharing} cannot split {num_heads} attention heads with"
            f" {num_key_heads} key-value heads, which {name} has, evenly; set it to a number that"
            " divides both, or leave it out"
        )
