"""Checks a model from elsewhere in its own process, which `storage.limited` starts."""

from pathlib import Path

from agentworld.storage.limited import answer, bound
from agentworld.train.chat_template import check_renders, load_tokenizer
from agentworld.train.shapes import check_shapes

_LOADING_SECONDS = 120  # for a vocabulary of a million words
_RENDERING_SECONDS = 5
_SHAPING_SECONDS = 300  # for a model of a thousand experts in each layer
_GIB = 4


def check(folder: str) -> None:
    """Raises InputError for a model whose chat template or weights cannot be used."""
    model = Path(folder)
    bound(_LOADING_SECONDS, _GIB)
    tokenizer = load_tokenizer(model)
    bound(_RENDERING_SECONDS, _GIB)
    check_renders(model, tokenizer)
    bound(_SHAPING_SECONDS, _GIB)
    check_shapes(model)


if __name__ == "__main__":
    answer(check)
