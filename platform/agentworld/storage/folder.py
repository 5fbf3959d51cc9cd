"""A folder anywhere: on a disk, in a bucket, in memory. What an address means is decided here."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from fsspec.core import url_to_fs

from agentworld.errors import AgentworldError, InputError, NotFound, StoreError
from agentworld.records.file import NotRegular
from agentworld.storage.address import redact
from agentworld.storage.bucket import Bucket
from agentworld.storage.disk import Disk

_NO_FILE = (errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG)
"""What is said of something else in a file's place, which waits for nobody."""
TIME_FIELDS = ("LastModified", "mtime", "last_modified", "updated", "created")
"""The names that fsspec's drivers have for the time at which an object was written."""


class Folder(Protocol):
    """Files by name, each whole or not there. What a method has written survives a power cut."""

    def write(self, name: str, data: bytes) -> None:
        """Makes a file, or exchanges it."""

    def create(self, name: str, data: bytes) -> None:
        """Makes a file; raises FileExistsError where the name is taken."""

    def put_file(self, name: str, source: Path) -> None:
        """Makes a file of any size from one on this machine; a killed writer may leave a part."""

    def read(self, name: str) -> bytes:
        """Raises FileNotFoundError."""

    def open(self, name: str) -> BinaryIO:
        """A file of any size, to be read in pieces; raises FileNotFoundError."""

    def has(self, name: str) -> bool:
        """Whether there is such a file."""

    def remove(self, name: str) -> None:
        """Raises FileNotFoundError."""

    def names(self, prefix: str) -> list[str]:
        """The names that begin so, sorted."""


def open_folder(url: str) -> Folder:
    """A folder by path or URL; raises InputError for what is none, or needs another package."""
    try:
        # What another process wrote a moment ago must be seen: no listing is kept.
        system, path = url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        raise InputError(f"{redact(url)} needs a package that is not here: {error}") from error
    except ValueError as error:
        raise InputError(
            f"{redact(url)} is no address of a store ({error}); give a path or s3://bucket/folder"
        ) from error
    return Disk(Path(path)) if getattr(system, "local_file", False) else Bucket(system, path)


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Errors of a folder as StoreError, in one sentence; `url` is already fit to be shown."""
    try:
        yield
    except AgentworldError:
        raise
    except Exception as error:  # each of fsspec's drivers has errors of its own
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        raise StoreError(
            f"the object store {url} failed: {redact(reason)}; check address, rights and free"
            " space",
            retryable=not isinstance(error, NotRegular)
            and getattr(error, "errno", None) not in _NO_FILE,
        ) from error


def read_file(url: str) -> bytes:
    """One file by path or URL; raises NotFound, and StoreError."""
    folder, _, name = url.rpartition("/")
    with translate_errors(redact(url)):
        try:
            return open_folder(folder).read(name)
        except FileNotFoundError as error:
            raise NotFound(f"there is no {redact(url)}; put the file there") from error
