"""Whether a chat template from elsewhere makes a prompt, in the way that engines render it: by the
tokenizer beside it, in transformers' sandbox of Jinja.
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
    """The tokenizer of a model's folder; raises InputError."""
    with refuse_failures(folder):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            folder, local_files_only=True
        )
    return tokenizer


def check_renders(folder: Path, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raises InputError where its template makes none of a system's and a user's message, which is
    what a world is asked with: where it reaches for Python, or knows no system.
    """
    with refuse_failures(folder):
        tokenizer.apply_chat_template(_CONVERSATION, tokenize=False, add_generation_prompt=True)


@contextmanager
def refuse_failures(folder: Path) -> Iterator[None]:
    """Raises InputError for whatever a tokenizer or its template raises; MemoryError as it is."""
    try:
        yield
    except MemoryError:
        raise
    except InputError as error:
        raise InputError(f"{folder}: {error}") from error
    except Exception as error:  # whatever Python raises, a template can
        message = " ".join(str(error).split())[:200]
        raise InputError(
            f"{folder} has a chat template or a tokenizer that makes no prompt of a system's and a"
            f" user's message ({message}); correct it"
        ) from error
