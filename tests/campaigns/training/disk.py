"""A small disk that can be filled up, visible only to processes that enter its namespace."""

import ctypes
import os
import shutil
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

_MOUNTS = 0x00020000  # CLONE_NEWNS
_MIB = 24
_FILLER = "filler"


class SmallDisk(AbstractContextManager["SmallDisk"]):
    """Mounted at a folder, which requires root."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        script = f'mount -t tmpfs -o size={_MIB}m tmpfs "$1" && echo && exec sleep infinity'
        self._holder = subprocess.Popen(
            [
                "setpriv",
                "--pdeathsig",
                "KILL",
                "unshare",
                "--mount",
                "sh",
                "-c",
                script,
                "sh",
                folder,
            ],
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        assert self._holder.stdout
        assert self._holder.stdout.readline(), (
            "nothing is mounted; a campaign of trainings needs root"
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._holder.kill()
        self._holder.communicate()

    @property
    def pid(self) -> int:
        """The process that owns it; see `enter`."""
        return self._holder.pid

    @property
    def seen(self) -> Path:
        """Its folder for a process that did not enter."""
        return Path(f"/proc/{self.pid}/root{self.folder}")

    def empty(self) -> None:
        """Removes the filling."""
        (self.seen / _FILLER).unlink(missing_ok=True)


def enter(pid: int) -> None:
    """Enters the other process's mount namespace; this process must have one thread."""
    namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _MOUNTS):
        raise OSError(ctypes.get_errno(), "the disk cannot be entered")
    os.close(namespace)


def fill(disk: Path, left_bytes: int) -> None:
    """Fills the disk up to `left_bytes`."""
    free = shutil.disk_usage(disk).free
    with (disk / _FILLER).open("ab") as file:
        file.write(bytes(max(0, free - left_bytes)))
