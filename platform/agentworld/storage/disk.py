"""A folder on a disk of this machine.

A file is written under another name, synced, and renamed or linked to its own; then the folder
is synced, without which a power cut takes the name away again. A killed writer leaves a hidden
draft behind and nothing else.
"""

import os
import shutil
from pathlib import Path
from typing import BinaryIO

from agentworld.records.file import draft, open_regular, read_regular, sync

_PIECE_BYTES = 1 << 20


class Disk:
    """A kind of Folder."""

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
