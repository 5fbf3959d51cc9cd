"""Garbage in files: other contents, other kinds of file, additional files of any name."""

import os
import random
import shutil
import socket
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path

from campaigns.garbage import values

_LONGEST_NAME = 100


def _content(file: Path, chance: random.Random) -> None:
    file.unlink()
    file.write_bytes(values.content(chance))


def _cut(file: Path, chance: random.Random) -> None:
    data = file.read_bytes()
    file.unlink()
    file.write_bytes(data[: chance.randrange(len(data) + 1)])


def _beside(file: Path, chance: random.Random) -> None:
    """Adds a file with a garbage name."""
    name = (values.name(chance).encode() or b"a") if chance.random() < 0.5 else b"\xff\xfe \xe9"
    name = name.replace(b"/", b"_").replace(b"\0", b"_")[:_LONGEST_NAME]
    path = os.fsencode(file.parent) + b"/" + name
    with open(path, "wb") as new_file:
        new_file.write(values.content(chance))


def _missing(file: Path, _: random.Random) -> None:
    file.unlink()


def _folder(file: Path, _: random.Random) -> None:
    file.unlink()
    file.mkdir()


def _link_to_nothing(file: Path, _: random.Random) -> None:
    file.unlink()
    file.symlink_to(file.parent / "nothing")


def _link_to_itself(file: Path, _: random.Random) -> None:
    file.unlink()
    file.symlink_to(file)


def _pipe(file: Path, _: random.Random) -> None:
    file.unlink()
    os.mkfifo(file)


def _socket(file: Path, _: random.Random) -> None:
    file.unlink()
    working_folder = os.getcwd()
    os.chdir(file.parent)  # the address of a socket is limited in length
    try:
        with closing(socket.socket(socket.AF_UNIX)) as listener:
            listener.bind(file.name[:90])
    finally:
        os.chdir(working_folder)


def _endless(file: Path, _: random.Random) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


def _sparse(file: Path, _: random.Random) -> None:
    """Larger than any record, without using disk space."""
    file.unlink()
    file.touch()
    os.truncate(file, 1 << 30)


KINDS: dict[str, Callable[[Path, random.Random], None]] = {
    "content": _content,
    "cut": _cut,
    "beside": _beside,
    "missing": _missing,
    "folder": _folder,
    "link to nothing": _link_to_nothing,
    "link to itself": _link_to_itself,
}
SPECIAL: dict[str, Callable[[Path, random.Random], None]] = {
    "pipe": _pipe,
    "socket": _socket,
    "endless": _endless,
    "sparse": _sparse,
}
"""Special files, which readers must not open, or not read to the end."""


class Files:
    """Folders of a store, in which one file at a time is garbled."""

    def __init__(self, root: Path, folders: Iterable[str], spared: Iterable[str]) -> None:
        self._root = root
        self._folders = [*folders]
        self._kept = root.with_name(f"{root.name}-untouched")
        for folder in self._folders:
            shutil.copytree(root / folder, self._kept / folder, symlinks=True)
        files = (file for folder in self._folders for file in (root / folder).rglob("*"))
        regular_files = [file for file in files if file.is_file()]
        self._files = sorted(
            file for file in regular_files if not any(item in str(file) for item in spared)
        )
        self._garbled: Path | None = None

    def garble(self, kind: str, chance: random.Random) -> str:
        """Garbles a file; describes the change."""
        folder = chance.choice(
            self._folders
        )  # each folder equally often, however many files it has
        candidates = [file for file in self._files if file.is_relative_to(self._root / folder)]
        self._garbled = chance.choice(candidates)
        (KINDS | SPECIAL)[kind](self._garbled, chance)
        return f"{kind}: {self._garbled.relative_to(self._root)}"

    def undo(self) -> None:
        """Restores the whole folder of the file."""
        if self._garbled is None:
            return
        folder = self._garbled.parent
        backup = self._kept / folder.relative_to(self._root)
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)
        shutil.copytree(backup, folder, symlinks=True)
        self._garbled = None
