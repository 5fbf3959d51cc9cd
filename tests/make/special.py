"""What somebody can put where a file was, to keep its reader waiting for ever."""

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
    """Puts this in the place of a file, or where there was none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    SPECIAL[kind](path)
