"""Checks that a foreign chat template renders a prompt, in the same way as engines do it.

The tokenizer in its folder renders it, in transformers' sandbox of Jinja.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from agentworld.errors import InputError
from agentworld.records.message import Message

_CONVERSATION = [
    Message(role="system", content="the system's text"),
    Message(role="user", content="a question"),
]


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """The tokenizer of a model's folder; raises InputError if it cannot be loaded."""
    with refuse_failures(folder):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            folder, local_files_only=True
        )
    return tokenizer


def check_renders(folder: Path, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raises InputError if the template cannot render a system's and a user's message.

    A world model's prompt consists of these. A template fails if it has no system role, or if it
    accesses Python objects.
    """
    with refuse_failures(folder):
        tokenizer.apply_chat_template(_CONVERSATION, tokenize=False, add_generation_prompt=True)


@contextmanager
def refuse_failures(folder: Path) -> Iterator[None]:
    """Turns every error of a tokenizer or its template into InputError, except MemoryError."""
    try:
        yield
    except MemoryError:
        raise
    except InputError as error:
        raise InputError(f"{folder}: {error}") from error
    except Exception as error:  # a template can raise any error of Python
        message = " ".join(str(error).split())[:200]
        raise InputError(
            f"{folder} has a chat template or a tokenizer that makes no prompt of a system's and a"
            f" user's message ({message}); correct it"
        ) from error
