"""Reads the members of a zip, each as a whole, up to the size limit of a document.

Newer zips are compressed by zstd (method 93), which the standard library reads from Python 3.14 on.
"""

import copy
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from agentworld.data.importers.rows import MOST_DOCUMENT_BYTES
from agentworld.errors import InputError
from agentworld.storage.source import UNREADABLE, SourceFile

_ZSTD = 93
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTD)
_ENCRYPTED = 1
_DAMAGE = (*UNREADABLE, ValueError, NotImplementedError, zipfile.BadZipFile, struct.error)


class Zip:
    """An open zip."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        # A member that was written again stands there twice, and the last one counts.
        self._members = {member.filename: member for member in file.infolist()}

    @property
    def names(self) -> list[str]:
        """The names of its members, in order."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """The content of a member; raises InputError if it cannot be read."""
        member = self._members[name]
        if member.flag_bits & _ENCRYPTED:
            raise InputError("it is encrypted; decrypt it")
        if member.compress_type not in _METHODS:
            raise InputError(
                f"it is compressed by method {member.compress_type}; zip it by deflate"
            )
        if member.file_size > MOST_DOCUMENT_BYTES:
            raise InputError(f"it is longer than {MOST_DOCUMENT_BYTES:,} bytes; split it")
        try:
            data = self._inflate(member)
        except _DAMAGE as error:
            raise InputError(f"it is damaged ({error}); copy it again") from error
        if len(data) != member.file_size or zlib.crc32(data) != member.CRC:
            raise InputError("it is damaged (size or checksum differ); copy it again")
        return data

    def _inflate(self, member: zipfile.ZipInfo) -> bytes:
        size = member.file_size + 1  # detects a member that is longer than stated
        if member.compress_type != _ZSTD:
            with self._file.open(member) as stream:
                return stream.read(size)
        import pyarrow  # noqa: PLC0415  it takes a third of a second

        with self._file.open(_as_stored(member)) as stream:
            return bytes(pyarrow.CompressedInputStream(stream, "zstd").read(size))


def _as_stored(member: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """A copy of a member's entry with which the standard library reads the compressed bytes."""
    stored = copy.copy(member)
    stored.compress_type = zipfile.ZIP_STORED
    stored.file_size = member.compress_size
    del stored.CRC  # it is of the inflated bytes
    return stored


@contextmanager
def open_zip(file: SourceFile) -> Iterator[Zip]:
    """Opens a zip; raises InputError if the file is not one."""
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(file.open())
            archive = Zip(zipfile.ZipFile(stream))
        except _DAMAGE as error:
            raise InputError(f"it is not a whole zip ({error}); copy it again") from error
        yield archive
