"""Cross-entropy over a large vocabulary, without the logits of all tokens at once."""

import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

MOST_LOGITS = 2**28
"""The limit of one part: a gigabyte in float32."""


def loss_sum(
    hidden: torch.Tensor,
    output_layer: torch.nn.Linear,
    truth: torch.Tensor,
    most_logits: int = MOST_LOGITS,
) -> torch.Tensor:
    """The summed loss of hidden states (N, D) against token ids (N,).

    More logits are computed in parts, and again in the backward pass.
    """
    num_tokens = max(1, most_logits // output_layer.out_features)
    if len(hidden) <= num_tokens:
        return _loss_sum(hidden, output_layer, truth)
    part_of_loss = _compiled_loss_sum if hidden.is_cuda else _loss_sum
    losses = [
        checkpoint(part_of_loss, part, output_layer, tokens, use_reentrant=False)
        for part, tokens in zip(hidden.split(num_tokens), truth.split(num_tokens), strict=True)
    ]
    return torch.stack(losses).sum()


def has_plain_logits(model: PreTrainedModel, inputs: dict[str, torch.Tensor]) -> bool:
    """Whether a model's logits are those of its output layer; some models scale or cap them."""
    hidden: list[torch.Tensor] = []
    with model.model.register_forward_hook(
        lambda _model, _inputs, output: hidden.append(output.last_hidden_state)
    ):
        logits = model(**inputs).logits
    return bool(torch.equal(model.lm_head(*hidden).float(), logits.float()))


def _loss_sum(
    hidden: torch.Tensor, output_layer: torch.nn.Linear, truth: torch.Tensor
) -> torch.Tensor:
    return cross_entropy(output_layer(hidden).float(), truth, reduction="sum")


# Without it, the softmax over a large vocabulary takes a fifth of a step of 0.6 billion parameters.
_compiled_loss_sum = torch.compile(_loss_sum, dynamic=True)
