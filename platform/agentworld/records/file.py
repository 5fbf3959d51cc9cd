"""Files: what others may have exchanged is read with care, and what is written is written whole.

Only regular files are opened, and no more is read than fits in memory.

A pipe blocks its reader and a device has no end. What is no regular file raises NotRegular, an
OSError, so that whoever handles a file that cannot be read handles it too.
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
"""Of a file that is read whole, and of a line. The longest that we write are objects, which hold
what one request may: 4 MiB."""

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}
_DATABASE_FILES = ("", "-journal", "-wal", "-shm")
# A pipe that takes a file's place between the look and the opening blocks nobody.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NotRegular(OSError):
    """There is something else than a regular file, or one that is too large; a retry is no help."""


def open_regular(path: Path, most_bytes: int | None = None) -> BinaryIO:
    """Opens a file to be read from its start; raises OSError, also for one of more bytes."""
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
    """All of a file; raises OSError, also for one of more than `most_bytes`."""
    with open_regular(path, most_bytes) as file:
        return _check_size(path, file.read(most_bytes + 1), most_bytes)


def read_lines(path: Path, most_bytes: int = MOST_BYTES) -> Iterator[bytes]:
    """A file's lines with their ends; raises OSError, also for one of more than `most_bytes`."""
    with open_regular(path) as file:
        while line := file.readline(most_bytes + 1):
            yield _check_size(path, line, most_bytes)


def check_regular(*paths: Path) -> None:
    """Raises NotRegular where one of these is there and is no regular file: another library opens
    it.
    """
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError):  # it may go while it is looked at
            _check(path, os.stat(path))


def check_sqlite(path: Path) -> None:
    """Raises StoreError where an SQLite database, or a file beside it, is no regular file: SQLite
    waits for ever on a pipe.
    """
    try:
        check_regular(*(path.with_name(path.name + end) for end in _DATABASE_FILES))
    except OSError as error:
        raise StoreError(
            f"the database {path} cannot be opened: of {error.filename}, {error.strerror}; take it"
            " away, or restore it",
            retryable=False,
        ) from error


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file so that a reader, or a crash, sees the old content or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft(path, data) as file:
        file.replace(path)


@contextmanager
def draft(path: Path, data: bytes, mode: int = 0o666) -> Iterator[Path]:
    """A synced file beside `path`, to be renamed or linked to it; the name outlives a power cut."""
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
        # Even where the name was taken: who took it may not have come to this.
        sync(path.parent)


def sync(path: Path) -> None:
    """A file's bytes, or the names in a folder, outlive a power cut from now on."""
    handle = os.open(path, _FLAGS)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def input_errors(path: Path) -> Iterator[None]:
    """Raises InputError for a file that cannot be read."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check the path") from error


def _check(path: Path, metadata: os.stat_result) -> None:
    if not stat.S_ISREG(metadata.st_mode):
        kind = _KINDS.get(stat.S_IFMT(metadata.st_mode), "something else")
        raise NotRegular(errno.EINVAL, f"it is {kind} and no regular file", str(path))


def _check_size(path: Path, data: bytes, most_bytes: int) -> bytes:
    if len(data) > most_bytes:
        raise _too_large(path, most_bytes)
    return data


def _too_large(path: Path, most_bytes: int) -> NotRegular:
    return NotRegular(errno.EFBIG, f"it has more than {most_bytes} bytes", str(path))
