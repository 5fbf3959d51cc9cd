"""Special files that can replace a file and block its reader for ever."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

SPECIAL: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "a folder": Path.mkdir,
}


def exchange(path: Path, kind: str = "a pipe") -> None:
    """Replaces a file by a special file, or creates it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    SPECIAL[kind](path)
