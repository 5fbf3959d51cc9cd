"""Files: safe reading of untrusted files, and atomic writing.

Only regular files are opened, with a size limit.

A pipe blocks its reader and a device has no end. Anything but a regular file raises NotRegular, an
OSError, so that handlers of unreadable files cover it.
"""

import errno
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from agentworld.errors import InputError, StoreError

MOST_BYTES = 1 << 26
"""The limit for a file that is read completely, and for a line. The largest files that we write are
objects, which hold one request: 4 MiB.
"""

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}
_DATABASE_FILES = ("", "-journal", "-wal", "-shm")
# A pipe that replaces a file between the check and the opening blocks nothing.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NotRegular(OSError):
    """Not a regular file, or one that is too large; a retry does not help."""


def open_regular(path: Path, most_bytes: int | None = None) -> BinaryIO:
    """Opens a file for reading; raises OSError, also if it is larger than `most_bytes`."""
    _check(path, os.stat(path))
    handle = os.open(path, _FLAGS)
    file = os.fdopen(handle, "rb")
    try:
        metadata = os.fstat(handle)
        _check(path, metadata)
        if most_bytes is not None and metadata.st_size > most_bytes:
            raise _too_large(path, most_bytes)
    except BaseException:
        file.close()
        raise
    return file


def read_regular(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Reads a whole file; raises OSError, also if it is larger than `most_bytes`."""
    with open_regular(path, most_bytes) as file:
        return _check_size(path, file.read(most_bytes + 1), most_bytes)


def read_lines(path: Path, most_bytes: int = MOST_BYTES) -> Iterator[bytes]:
    """Yields a file's lines with their ends; raises OSError, also if one is longer than
    `most_bytes`.
    """
    with open_regular(path) as file:
        while line := file.readline(most_bytes + 1):
            yield _check_size(path, line, most_bytes)


def check_regular(*paths: Path) -> None:
    """Raises NotRegular if one of these exists and is not a regular file, before another library
    opens it.
    """
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError):  # it may be deleted in the meantime
            _check(path, os.stat(path))


def check_sqlite(path: Path) -> None:
    """Raises StoreError if an SQLite database, or a file beside it, is not a regular file: SQLite
    waits for ever on a pipe.
    """
    try:
        check_regular(*(path.with_name(path.name + end) for end in _DATABASE_FILES))
    except OSError as error:
        raise StoreError(
            f"the database {path} cannot be opened: of {error.filename}, {error.strerror}; remove"
            " it, or restore it",
            retryable=False,
        ) from error


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file atomically: a reader sees the old content or the new, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft(path, data) as file:
        file.replace(path)


@contextmanager
def draft(path: Path, data: bytes, mode: int = 0o666) -> Iterator[Path]:
    """A synced temporary file beside `path`, to be renamed or linked to it; the new name is
    durable.
    """
    file = path.with_name(f".{uuid.uuid4().hex}.draft")
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        yield file
    finally:
        file.unlink(missing_ok=True)
        # Even if the name was taken: its creator may not have synced the folder yet.
        sync(path.parent)


def sync(path: Path) -> None:
    """Makes a file's bytes, or the names in a folder, durable."""
    handle = os.open(path, _FLAGS)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def input_errors(path: Path) -> Iterator[None]:
    """Converts the OSError of an unreadable file to InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check the path") from error


def _check(path: Path, metadata: os.stat_result) -> None:
    if not stat.S_ISREG(metadata.st_mode):
        kind = _KINDS.get(stat.S_IFMT(metadata.st_mode), "something else")
        raise NotRegular(errno.EINVAL, f"it is {kind} and not a regular file", str(path))


def _check_size(path: Path, data: bytes, most_bytes: int) -> bytes:
    if len(data) > most_bytes:
        raise _too_large(path, most_bytes)
    return data


def _too_large(path: Path, most_bytes: int) -> NotRegular:
    return NotRegular(errno.EFBIG, f"it has more than {most_bytes} bytes", str(path))
