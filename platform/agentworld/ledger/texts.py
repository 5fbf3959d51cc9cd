"""Where texts are kept: short ones in their row, long ones in the object store."""

from collections.abc import Iterable

from agentworld.errors import NotFound
from agentworld.records.base import Digest
from agentworld.records.episode import EpisodeStep, text_bytes, text_of
from agentworld.storage.objects import ObjectStore

LONGEST_IN_ROW = 8 * 1024  # bytes


class Texts:
    """Without an object store every text stays in its row."""

    def __init__(self, objects: ObjectStore | None) -> None:
        self._objects = objects

    def keep_long(self, steps: Iterable[EpisodeStep]) -> None:
        """Makes the long texts of these steps durable, before a transaction waits for it."""
        if self._objects is None:
            return
        for step in steps:
            for text in (step.action, step.observation):
                if text is not None and self._is_long(text):
                    self._objects.put(text_bytes(text))

    def in_row(self, text: str | None) -> bytes | None:
        """The bytes for the row; null for a long text, which is kept elsewhere."""
        return None if text is None or self._is_long(text) else text_bytes(text)

    def read(self, data: bytes | None, digest: Digest) -> str | None:
        """The text; null where it was erased."""
        if data is not None:
            return text_of(data)
        if self._objects is None:
            return None
        try:
            return text_of(self._objects.get(digest))
        except NotFound:
            return None

    def erase(self, digests: Iterable[Digest]) -> None:
        """Takes long texts away."""
        if self._objects is not None:
            for digest in digests:
                self._objects.erase(digest)

    def _is_long(self, text: str) -> bool:
        # Most texts are so short that nothing has to be encoded: a character has 4 bytes at most.
        maybe = self._objects is not None and 4 * len(text) > LONGEST_IN_ROW
        return maybe and len(text_bytes(text)) > LONGEST_IN_ROW
