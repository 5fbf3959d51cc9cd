"""A folder anywhere: on a disk, in a bucket, in memory. What an address means is decided here."""

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


class Disk:
    """A folder on a disk of this machine.

    A file is written under another name, synced, and renamed or linked to its own; then the folder
    is synced, without which a power cut takes the name away again. A killed writer leaves a hidden
    draft behind and nothing else.
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
            path.hardlink_to(file)  # unlike a rename, refuses a name that is taken

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
        """Makes a folder that a power cut does not take away, even one that another just made."""
        if folder in self._folders:
            return
        if self._root in folder.parents or not folder.parent.is_dir():
            self._make(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)
        self._folders.add(folder)


class Bucket:
    """A folder in a bucket, or wherever else fsspec reaches.

    A bucket takes an object whole and keeps it once it says so. Creating exclusively is one request
    where the driver knows it (S3, GCS, Azure), elsewhere a look and then a write.
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
            metadata = self._system.info(self._path(name))  # exists() takes a failure for absence
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
