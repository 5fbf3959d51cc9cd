"""A folder in a bucket, or wherever else fsspec reaches.

A bucket takes an object whole and keeps it once it says so. Creating exclusively is one request
where the driver knows it (S3, GCS, Azure), elsewhere a look and then a write.
"""

import errno
from pathlib import Path
from typing import BinaryIO, cast

from fsspec import AbstractFileSystem

from agentworld.records.file import MOST_BYTES, NotRegular


class Bucket:
    """A kind of Folder."""

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
