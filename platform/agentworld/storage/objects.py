"""Immutable bytes: objects, named by their digest, and files that are written once.

Both are in a folder on a disk or in a bucket (s3://, gs:// and other file systems of fsspec, each
with its own package). Each write is atomic and durable.
"""

import re
from contextlib import suppress

from agentworld.errors import Conflict, InputError, NotFound, StoreError
from agentworld.records.base import Digest, digest_bytes
from agentworld.records.file import MOST_BYTES
from agentworld.records.garbled import redact
from agentworld.storage.folder import open_folder, translate_errors

_DIGEST = re.compile(r"sha256:([0-9a-f]{2})([0-9a-f]{62})")
_FILE = re.compile(r"([0-9a-f]{2})/(\1[0-9a-f]{62})")
_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*", re.ASCII)


class ObjectStore:
    """Objects by digest. Several threads and processes may use one at the same time."""

    def __init__(self, url: str) -> None:
        self._display_url = redact(url)
        with translate_errors(self._display_url):
            self._folder = open_folder(url)

    def put(self, data: bytes) -> Digest:
        """Stores bytes; repeating it changes nothing, but repairs damaged bytes.

        Raises InputError if they exceed the size limit.
        """
        _check_size(data)
        digest = digest_bytes(data)
        with translate_errors(self._display_url):
            self._folder.write(_file(digest), data)
        return digest

    def get(self, digest: Digest) -> bytes:
        """The bytes of a digest; raises NotFound, and StoreError if they do not match."""
        with translate_errors(self._display_url):
            try:
                data = self._folder.read(_file(digest))
            except FileNotFoundError as error:
                raise NotFound(
                    f"there is no object {digest} in {self._display_url}; it was erased or never"
                    " stored"
                ) from error
        if digest_bytes(data) != digest:
            raise StoreError(
                f"the object {digest} in {self._display_url} is damaged; restore it from a copy",
                retryable=False,
            )
        return data

    def has(self, digest: Digest) -> bool:
        """Whether an object of this name exists, damaged or not."""
        with translate_errors(self._display_url):
            return self._folder.has(_file(digest))

    def digests(self) -> list[Digest]:
        """The digests of all objects, damaged or not, sorted."""
        with translate_errors(self._display_url):
            matches = map(_FILE.fullmatch, self._folder.names(""))
        return [f"sha256:{match[2]}" for match in matches if match]

    def erase(self, digest: Digest) -> None:
        """Deletes an object, if it exists."""
        with translate_errors(self._display_url), suppress(FileNotFoundError):
            self._folder.remove(_file(digest))


class WriteOnce:
    """Write-once files under names that the caller chooses."""

    def __init__(self, url: str) -> None:
        self._display_url = redact(url)
        with translate_errors(self._display_url):
            self._folder = open_folder(url)

    def put(self, name: str, data: bytes) -> None:
        """Stores bytes under a name; raises Conflict if the name has other bytes, and InputError if
        they exceed the size limit.
        """
        _check_size(data)
        with translate_errors(self._display_url):
            try:
                self._folder.create(_check_name(name), data)
            except FileExistsError as error:
                if self._folder.read(name) != data:
                    raise Conflict(
                        f"{name} in {self._display_url} holds other bytes and is written once; "
                        "find out who wrote it"
                    ) from error

    def get(self, name: str) -> bytes:
        """The bytes of a name; raises NotFound."""
        with translate_errors(self._display_url):
            try:
                return self._folder.read(_check_name(name))
            except FileNotFoundError as error:
                raise NotFound(
                    f"there is no {name} in {self._display_url}; check the name"
                ) from error

    def names(self, prefix: str = "") -> list[str]:
        """The names that begin with the prefix, sorted; without orphans."""
        if prefix and not _NAME.fullmatch(prefix.removesuffix("/")):
            return []  # a prefix such as `../` would list folders outside of the store
        with translate_errors(self._display_url):
            return [name for name in self._folder.names(prefix) if _NAME.fullmatch(name)]

    def orphans(self) -> list[str]:
        """Files with names that this class cannot have written: with blanks, not UTF-8, or other
        characters.
        """
        with translate_errors(self._display_url):
            return [name for name in self._folder.names("") if not _NAME.fullmatch(name)]


def _check_size(data: bytes) -> None:
    if len(data) > MOST_BYTES:
        raise InputError(f"an object has {len(data)} bytes; send at most {MOST_BYTES}")


def _file(digest: Digest) -> str:
    match = _DIGEST.fullmatch(digest)
    if match is None:
        raise InputError(f"{digest!r} is not a digest; give sha256: and 64 hexadecimal digits")
    return f"{match[1]}/{match[1]}{match[2]}"


def _check_name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise InputError(
            f"{name!r} is not a valid name; give letters, digits, `._-` and `/` between them"
        )
    return name
