"""A folder on a disk, in a bucket or in memory. This module interprets addresses."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs

from agentworld.errors import AgentworldError, InputError, NotFound, StoreError
from agentworld.records.file import (
    MOST_BYTES,
    NotRegular,
    draft,
    open_regular,
    read_regular,
    sync,
)
from agentworld.records.garbled import redact

_PIECE_BYTES = 1 << 20
_NO_FILE = (errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG)
"""Errors for something other than a file under its name; retrying does not help."""
TIME_FIELDS = ("LastModified", "mtime", "last_modified", "updated", "created")
"""The keys under which fsspec's drivers report an object's time of modification."""


class Folder(Protocol):
    """Files by name, written atomically. Each write is durable when the method returns."""

    def write(self, name: str, data: bytes) -> None:
        """Creates or replaces a file."""

    def create(self, name: str, data: bytes) -> None:
        """Creates a file; raises FileExistsError if the name is taken."""

    def put_file(self, name: str, source: Path) -> None:
        """Uploads a local file of any size; a killed writer may leave a part."""

    def read(self, name: str) -> bytes:
        """Raises FileNotFoundError."""

    def open(self, name: str) -> BinaryIO:
        """Opens a file of any size for reading; raises FileNotFoundError."""

    def has(self, name: str) -> bool:
        """Whether the file exists."""

    def remove(self, name: str) -> None:
        """Raises FileNotFoundError."""

    def names(self, prefix: str) -> list[str]:
        """The names that begin with the prefix, sorted."""


class Disk:
    """A folder on a disk of this machine.

    A file is written under a temporary name, synced, and renamed or linked; then the folder is
    synced, so that a power failure does not remove the name. A killed writer leaves only a hidden
    draft.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: set[Path] = set()

    def write(self, name: str, data: bytes) -> None:
        path = self._path(name)
        with draft(path, data) as file:
            file.replace(path)

    def create(self, name: str, data: bytes) -> None:
        path = self._path(name)
        with draft(path, data) as file:
            path.hardlink_to(file)  # unlike a rename, refuses an existing name

    def put_file(self, name: str, source: Path) -> None:
        path = self._path(name)
        with open_regular(source) as reader, path.open("wb") as writer:
            shutil.copyfileobj(reader, writer, _PIECE_BYTES)
            writer.flush()
            os.fsync(writer.fileno())
        sync(path.parent)

    def read(self, name: str) -> bytes:
        return read_regular(self._root / name)

    def open(self, name: str) -> BinaryIO:
        return open_regular(self._root / name)

    def has(self, name: str) -> bool:
        return (self._root / name).is_file()

    def remove(self, name: str) -> None:
        path = self._root / name
        try:
            path.unlink()
        finally:
            sync(path.parent)

    def names(self, prefix: str) -> list[str]:
        start = self._root / prefix.rpartition("/")[0]
        files = (path for path in start.rglob("[!.]*") if path.is_file())
        names = (path.relative_to(self._root).as_posix() for path in files)
        return sorted(name for name in names if name.startswith(prefix))

    def _path(self, name: str) -> Path:
        path = self._root / name
        self._make(path.parent)
        return path

    def _make(self, folder: Path) -> None:
        """Creates a folder durably, even if another process has just created it."""
        if folder in self._folders:
            return
        if self._root in folder.parents or not folder.parent.is_dir():
            self._make(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)
        self._folders.add(folder)


class Bucket:
    """A folder in a bucket, or any other file system of fsspec.

    A bucket stores an object atomically. Exclusive creation is one request if the driver supports
    it (S3, GCS, Azure), otherwise a check and then a write.
    """

    def __init__(self, system: AbstractFileSystem, root: str) -> None:
        self._system = system
        self._root = root.rstrip("/")

    def write(self, name: str, data: bytes) -> None:
        self._system.pipe_file(self._path(name), data)

    def create(self, name: str, data: bytes) -> None:
        self._system.pipe_file(self._path(name), data, mode="create")

    def put_file(self, name: str, source: Path) -> None:
        self._system.put_file(str(source), self._path(name))

    def read(self, name: str) -> bytes:
        size = self._system.size(self._path(name))
        if size is not None and size > MOST_BYTES:
            raise NotRegular(errno.EFBIG, f"{name} has more than {MOST_BYTES} bytes")
        return bytes(self._system.cat_file(self._path(name)))

    def open(self, name: str) -> BinaryIO:
        return cast(BinaryIO, self._system.open(self._path(name), "rb"))

    def has(self, name: str) -> bool:
        try:
            metadata = self._system.info(self._path(name))  # exists() reports failures as absence
        except FileNotFoundError:
            return False
        return bool(metadata["type"] == "file")

    def remove(self, name: str) -> None:
        self._system.rm_file(self._path(name))

    def names(self, prefix: str) -> list[str]:
        paths = self._system.find(self._path(prefix.rpartition("/")[0]).rstrip("/"))
        names = (path.removeprefix(self._root + "/") for path in paths)
        return sorted(name for name in names if name.startswith(prefix))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


def open_folder(url: str) -> Folder:
    """Opens a folder by path or URL; raises InputError for an invalid one, or if it needs another
    package.
    """
    try:
        # Recent writes of other processes must be visible, so listings are not cached.
        system, path = url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        raise InputError(f"{redact(url)} needs a package that is not installed: {error}") from error
    except ValueError as error:
        raise InputError(
            f"{redact(url)} is not the address of a store ({error}); give a path or"
            " s3://bucket/folder"
        ) from error
    return Disk(Path(path)) if getattr(system, "local_file", False) else Bucket(system, path)


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Converts errors of a folder to StoreError, in one sentence; `url` must be redacted
    already.
    """
    try:
        yield
    except AgentworldError:
        raise
    except Exception as error:  # fsspec's drivers have no common class of errors
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
