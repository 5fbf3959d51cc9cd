"""The FLOPs of a training, by the formula of docs/benchmarks.md: 6 N + 6 L H d T for a token."""

from typing import NamedTuple, Self

from transformers import PreTrainedModel

from agentworld.train.packing import mixing_layers
from agentworld.train.zero import num_elements


class Flops(NamedTuple):
    """FLOPs of the forward and the backward pass, without recomputation."""

    by_token: int
    by_token_and_position: int

    @classmethod
    def of(cls, model: PreTrainedModel) -> Self | None:
        """Null for a model with other layers than full attention, and for a mixture of experts."""
        config = model.config
        if mixing_layers(model) or getattr(config, "num_experts", None):
            return None
        # a frozen weight has no gradient
        weights = [
            (6 if weight.requires_grad else 4) * num_elements(weight)
            for weight in model.parameters()
        ]
        width = config.num_attention_heads * (
            getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        )
        return cls(sum(weights), 6 * config.num_hidden_layers * width)

    def num(self, num_tokens: int, sum_of_squares: int) -> int:
        """The FLOPs of rows with this many tokens, and this sum of the squares of their lengths."""
        return num_tokens * self.by_token + sum_of_squares * self.by_token_and_position
