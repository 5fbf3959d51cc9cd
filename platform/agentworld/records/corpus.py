"""A corpus that is mixed with episodes in CPT: its documents and their weight."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from agentworld.records.base import Digest, Record


class Document(NamedTuple):
    """A text, or the response to a prompt."""

    text: str
    prompt: str | None = None
    """Null if the whole text is predicted."""


class Corpus(NamedTuple):
    """Documents in a fixed order."""

    content: Digest
    weight: float
    """The ratio of its tokens to those of the episodes."""
    read: Callable[[], Iterator[Document]]
    """Raises InputError if they are unreadable, or do not match `content`."""


class CorpusUse(Record):
    """The part of a corpus that a stage was trained on."""

    content: Digest
    """The digest of all its files, by their names."""
    num_documents: int
    num_tokens: int
    share: float
    """Its share of all tokens of the training (episodes and all corpora)."""
    target_share: float
    """Its share of the tokens in the loss: for episodes, only observations count."""
