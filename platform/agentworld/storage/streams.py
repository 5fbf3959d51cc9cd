"""Streams of a source's bytes: counted, and with errors that show no secret."""

import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, BinaryIO

from agentworld.errors import AgentworldError
from agentworld.records.garbled import redact

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MOST_OF_ERROR = 300
_BUGS = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError)

ErrorContext = Callable[[], AbstractContextManager[None]]


class Meter:
    """Counts the bytes that are read of a file."""

    def __init__(self) -> None:
        self.num_bytes = 0


@contextmanager
def redact_errors() -> Iterator[None]:
    """Removes secrets of an address from OSErrors."""
    try:
        yield
    except OSError as error:
        if (message := redact(str(error))) == str(error):
            raise
        raise OSError(message) from None


@contextmanager
def driver_errors() -> Iterator[None]:
    """Converts errors of fsspec's drivers to OSError, without secrets; other exceptions pass
    unchanged.
    """
    with redact_errors():
        try:
            yield
        except (AgentworldError, OSError, MemoryError):
            raise
        except Exception as error:
            # google.auth raises a TypeError that is not a bug.
            if isinstance(error, _BUGS) and type(error).__module__ == "builtins":
                raise
            words = " ".join(redact(str(error)).split())
            raise OSError(words[:_MOST_OF_ERROR] or type(error).__name__) from None


class Stream(io.RawIOBase):
    """A file whose reads are counted if there is a meter."""

    def __init__(self, file: BinaryIO, meter: Meter | None, errors: ErrorContext) -> None:
        """Reads the file within the context of `errors`."""
        self._file = file
        self._meter = meter
        self._errors = errors

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: "WriteableBuffer") -> int:
        target = memoryview(buffer)
        with self._errors():
            data = self._file.read(len(target))
        target[: len(data)] = data
        if self._meter:
            self._meter.num_bytes += len(data)
        return len(data)


class LineStream(io.RawIOBase):
    """A file object over an iterator of lines."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        if not self._rest:
            self._rest = memoryview(next(self._lines, b""))
        target = memoryview(buffer)
        size = min(len(target), len(self._rest))
        target[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
