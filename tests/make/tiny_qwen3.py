"""Shared parts of the tests' tiny models: a byte-level tokenizer, and the shape of a Qwen3.

Imports none of our packages, because programs in separate environments use it, too.
"""

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config

CHATML_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def byte_level(
    texts: Iterable[str],
    size: int,
    special_tokens: Sequence[str] = CHATML_TOKENS,
    pre_tokenizer: pre_tokenizers.PreTokenizer | None = None,
) -> Tokenizer:
    """A tokenizer of at most `size` tokens, trained on these texts; it is lossless."""
    tokenizer = Tokenizer(models.BPE())
    default = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizer or default
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(special_tokens),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def shape(tokenizer: PreTrainedTokenizerFast, **sizes: object) -> Qwen3Config:
    """Two layers for this tokenizer; the caller sets `hidden_size` and other fields."""
    fields = {
        "vocab_size": len(tokenizer),
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 1024,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": None,
    }
    return Qwen3Config(**fields | sizes)
