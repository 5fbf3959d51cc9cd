"""A corpus beside episodes in CPT: its documents, and how much of a training they are."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from agentworld.records.base import Digest, Record


class Document(NamedTuple):
    """A text, or the answer to a prompt."""

    text: str
    prompt: str | None = None
    """Null where all of the text is to be predicted."""


class Corpus(NamedTuple):
    """Documents in an order that never changes."""

    content: Digest
    weight: float
    """Its tokens for each token of the episodes."""
    read: Callable[[], Iterator[Document]]
    """Raises InputError where they cannot be read, or are others than those of its content."""


class CorpusUse(Record):
    """What of a corpus was trained on."""

    content: Digest
    """The digest of all its files, by their names."""
    num_documents: int
    num_tokens: int
    share: float
    """Of all tokens of the training, those of the episodes and of all corpora."""
    target_share: float
    """Of the tokens whose loss counts: of an episode these are the observations alone."""
