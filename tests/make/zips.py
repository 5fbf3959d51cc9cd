"""Zip files, including those of newer tools and damaged ones."""

import struct
import zipfile
import zlib

import pyarrow

_LOCAL, _CENTRAL = b"PK\x03\x04", b"PK\x01\x02"


def write_zip(path, members):
    """Compressed with deflate."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def write_zstd_zip(path, members):
    """Compressed with zstd: writes its frames as stored, and then sets the method in the
    headers.
    """
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, pyarrow.compress(data, codec="zstd", asbytes=True))
        offsets = [item.header_offset for item in archive.infolist()]
    content = bytearray(path.read_bytes())
    offset = content.index(_CENTRAL)
    for local, data in zip(offsets, members.values(), strict=True):
        _describe(content, local + 8, data)
        _describe(content, offset + 10, data)
        offset = content.find(_CENTRAL, offset + 1)
    path.write_bytes(content)
    return path


def _describe(content, offset, data, method=93):
    """Writes method, checksum and size, which are adjacent in both kinds of header."""
    struct.pack_into("<H", content, offset, method)
    struct.pack_into("<I", content, offset + 6, zlib.crc32(data))
    struct.pack_into("<I", content, offset + 14, len(data))


def set_field(path, offset, layout, value):
    """Changes a field of the first member in the zip's directory, at its offset there."""
    content = bytearray(path.read_bytes())
    struct.pack_into(layout, content, content.index(_CENTRAL) + offset, value)
    path.write_bytes(content)
