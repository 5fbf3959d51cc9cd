"""Files that only their owner may read: keys and secrets."""

import os
import stat
from pathlib import Path

from agentworld.errors import InputError
from agentworld.records.file import input_errors, open_regular

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_MORE_THAN_READING = stat.S_IWGRP | stat.S_IXGRP | stat.S_IRWXO
_MOST_BYTES = 1 << 16  # a key is smaller


def read_private(path: Path) -> bytes:
    """The content of such a file; raises InputError if others may read it, and FileNotFoundError.

    A Secret that Kubernetes mounts into a pod without root belongs to root, and the pod's group may
    read it: there is no stricter mode.
    """
    with input_errors(path):
        is_there = path.exists()
    if not is_there:
        raise FileNotFoundError(path)
    with input_errors(path), open_regular(path) as file:
        metadata = os.fstat(file.fileno())
        mode = stat.S_IMODE(metadata.st_mode)
        if mode & (_MORE_THAN_READING if _is_mounted(metadata) else _OTHERS):
            raise InputError(
                f"{path} is accessible to other users (mode {mode:04o}); set its mode to 0600"
            )
        return file.read(_MOST_BYTES)


def _is_mounted(metadata: os.stat_result) -> bool:
    is_own_group = metadata.st_gid in {os.getegid(), *os.getgroups()}
    return metadata.st_uid == 0 != os.geteuid() and is_own_group
