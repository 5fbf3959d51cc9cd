"""Where texts are kept: short ones in their row, long ones in the object store."""

from collections.abc import Iterable

from agentworld.errors import InputError, StoreError
from agentworld.ledger.database import bytes_of
from agentworld.records.base import Digest
from agentworld.records.episode import text_bytes, text_digest, text_of
from agentworld.storage.objects import ObjectStore

LONGEST_IN_ROW = 8 * 1024  # bytes


class Texts:
    """Without an object store every text stays in its row."""

    def __init__(self, objects: ObjectStore | None) -> None:
        self._objects = objects

    def long(self, texts: Iterable[str | None]) -> list[str]:
        """Those of these texts that are kept in the object store."""
        return [text for text in dict.fromkeys(texts) if text is not None and self._is_long(text)]

    def keep(self, long: Iterable[str]) -> None:
        """Makes long texts durable, before a transaction waits for it."""
        if self._objects is not None:
            for text in long:
                self._objects.put(text_bytes(text))

    def keep_in_use(self, long: Iterable[str]) -> None:
        """Keeps once more those that somebody erased since, to be asked while nobody erases."""
        if self._objects is not None:
            self.keep(text for text in long if not self._objects.has(text_digest(text)))

    def in_row(self, text: str | None) -> bytes | None:
        """The bytes for the row; null for a long text, which is kept elsewhere."""
        return None if text is None or self._is_long(text) else text_bytes(text)

    def read(self, data: bytes | None, digest: Digest) -> str:
        """The text; raises StoreError where it is neither in its row nor in the object store."""
        if data is not None:
            return text_of(bytes_of(data))
        try:
            if self._objects is not None:
                return text_of(self._objects.get(str(digest)))
        except InputError:  # there is none, or somebody made a digest into what is none
            pass
        raise _missing(digest)

    def check_readable(self, digests: Iterable[Digest]) -> None:
        """Raises StoreError where one of these long texts is not in the object store."""
        for digest in digests:
            if self._objects is None or not self._objects.has(digest):
                raise _missing(digest)

    def erase(self, digest: Digest) -> None:
        """Takes a long text away."""
        if self._objects is not None:
            self._objects.erase(digest)

    def _is_long(self, text: str) -> bool:
        # Most texts are so short that nothing has to be encoded: a character has 4 bytes at most.
        may_be_long = self._objects is not None and 4 * len(text) > LONGEST_IN_ROW
        return may_be_long and len(text_bytes(text)) > LONGEST_IN_ROW


def _missing(digest: Digest) -> StoreError:
    return StoreError(
        f"the text {digest} is lost and was not erased; restore the object store, or name it",
        retryable=False,
    )
