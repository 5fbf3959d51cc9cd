"""Trains the tokenizer of a new model: byte-level BPE that never merges across pieces.

A word has the same tokens everywhere, so that a small model can copy a word that it has never seen.
The domain defines the pieces; the text between pieces is split into bytes.
"""

from collections.abc import Iterable
from importlib import resources

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

END = "<|end|>"
_ROLES = ["<|system|>", "<|user|>", "<|assistant|>"]
_SPECIAL = [END, "<|pad|>", *_ROLES]
# Marks the start of the answer in generated text for a server; without it `transformers serve` uses
# the template of Qwen3's own tokenizer and answers with the prompt.
_RESPONSE_TEMPLATE = {
    "start_anchor": "<|assistant|>",
    "fields": {"content": {"close": END, "content_args": {"strip": False}}},
}


def train_tokenizer(
    texts: Iterable[str], pattern: str, vocabulary_size: int
) -> PreTrainedTokenizerFast:
    """Learns at most `vocabulary_size` tokens; `pattern` is a regular expression for one piece."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=_SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens(["<think>", "</think>"])  # not special, because a parser must see them
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token="<|pad|>",
        clean_up_tokenization_spaces=False,
        additional_special_tokens=_ROLES,
        chat_template=_chat_template(),
        response_template=_RESPONSE_TEMPLATE,
    )


def _chat_template() -> str:
    return resources.files(__package__).joinpath("chat_template.jinja").read_text().rstrip("\n")
