"""A model whose engine computes every token but whose responses are fixed.

Each layer computes in full and adds nothing, so that the next token depends only on the last one.
Every response has the same length, can be parsed, and tokenizes to the generated tokens.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import Qwen3ForCausalLM

ANSWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ123456789bfjqvyz!#$%&()*+,-/:;=?@^_{|}"
"""Characters that the tokenizer never joins."""

CONTEXT_TOKENS = 2_048
_ASSISTANT, _END = "<|assistant|>", "<|end|>"


def counting_model(folder: Path, *, num_layers: int, hidden_size: int) -> Path:
    """Writes the model's files into a folder."""
    import torch
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

    from make.model import tiny_model

    tiny_model(folder, num_layers=num_layers, hidden_size=hidden_size)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    model = Qwen3ForCausalLM.from_pretrained(folder)
    model.config.max_position_embeddings = CONTEXT_TOKENS
    chain = [_ASSISTANT, *ANSWER, _END]
    with torch.no_grad():
        _silence_layers(model)
        _follow(model, tokenizer.convert_tokens_to_ids(chain))
    model.save_pretrained(folder)
    return folder


def _silence_layers(model: Qwen3ForCausalLM) -> None:
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()


def _follow(model: Qwen3ForCausalLM, chain: list[int]) -> None:
    """Makes each token of the chain the likeliest successor of the previous one."""
    from torch.nn.functional import normalize

    embeddings, output = model.model.embed_tokens.weight, model.lm_head.weight
    embeddings.copy_(normalize(embeddings, dim=-1))
    output.zero_()
    for token, successor in pairwise(chain):
        output[successor] = embeddings[token]
