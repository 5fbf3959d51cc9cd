"""Storage of texts: short ones in their row, long ones in the object store."""

from collections.abc import Iterable

from agentworld.errors import InputError, StoreError
from agentworld.ledger.database import bytes_of
from agentworld.records.base import Digest
from agentworld.records.episode import text_bytes, text_digest, text_of
from agentworld.storage.objects import ObjectStore

LONGEST_IN_ROW = 8 * 1024  # bytes


class Texts:
    """Without an object store, every text stays in its row."""

    def __init__(self, objects: ObjectStore | None) -> None:
        self._objects = objects

    def long(self, texts: Iterable[str | None]) -> list[str]:
        """The texts that belong in the object store."""
        return [text for text in dict.fromkeys(texts) if text is not None and self._is_long(text)]

    def keep(self, long: Iterable[str]) -> None:
        """Stores long texts durably, before a transaction needs them."""
        if self._objects is not None:
            for text in long:
                self._objects.put(text_bytes(text))

    def keep_in_use(self, long: Iterable[str]) -> None:
        """Stores again the long texts that were erased since; call it while erasing is locked
        out.
        """
        if self._objects is not None:
            self.keep(text for text in long if not self._objects.has(text_digest(text)))

    def in_row(self, text: str | None) -> bytes | None:
        """The bytes for the row; null for a long text."""
        return None if text is None or self._is_long(text) else text_bytes(text)

    def read(self, data: bytes | None, digest: Digest) -> str:
        """The text; raises StoreError if it is neither in its row nor in the object store."""
        if data is not None:
            return text_of(bytes_of(data))
        try:
            if self._objects is not None:
                return text_of(self._objects.get(str(digest)))
        except InputError:  # missing, or the digest was replaced by an invalid one
            pass
        raise _missing(digest)

    def check_readable(self, digests: Iterable[Digest]) -> None:
        """Raises StoreError if one of these long texts is not in the object store."""
        for digest in digests:
            if self._objects is None or not self._objects.has(digest):
                raise _missing(digest)

    def erase(self, digest: Digest) -> None:
        """Deletes a long text."""
        if self._objects is not None:
            self._objects.erase(digest)

    def _is_long(self, text: str) -> bool:
        # Most texts are short enough to skip encoding: a character has at most 4 bytes.
        may_be_long = self._objects is not None and 4 * len(text) > LONGEST_IN_ROW
        return may_be_long and len(text_bytes(text)) > LONGEST_IN_ROW


def _missing(digest: Digest) -> StoreError:
    return StoreError(
        f"the text {digest} is missing and was not erased; restore the object store, or name it",
        retryable=False,
    )
