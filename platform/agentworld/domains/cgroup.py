"""Limits the memory of a whole sandbox by a cgroup, if this process can create one.

That needs a writable folder of cgroup version 2 with the memory controller: as root of a machine,
or under systemd's user manager. Most pods have none. There the pod's limit applies, and the kernel
kills a sandbox before it kills a step.
"""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_SELF = Path("/proc/self")


def confine(pid: int, num_bytes: int, proc: Path = _SELF) -> Path | None:
    """Limits the memory of a process and its children; returns the cgroup's folder, or null."""
    for parent in _folders(proc):
        _sweep(parent)
        group = parent / f"agentworld-{os.getpid()}-{secrets.token_hex(4)}"
        with suppress(OSError):
            if "memory" not in (parent / "cgroup.subtree_control").read_text().split():
                continue
            group.mkdir()
            (group / "memory.max").write_text(str(num_bytes))
            with suppress(OSError):  # a kernel without swap accounting
                (group / "memory.swap.max").write_text("0")
            (group / "memory.oom.group").write_text("1")
            (group / "cgroup.procs").write_text(str(pid))
            return group
        remove(group)
    return None


def remove(group: Path) -> None:
    """Removes a group whose processes have ended."""
    with suppress(OSError):
        group.rmdir()


def _folders(proc: Path) -> Iterator[Path]:
    """The cgroup of this process, then its parent; only a root has both processes and children."""
    with suppress(OSError, StopIteration):
        own = next(
            line.removeprefix("0::")
            for line in (proc / "cgroup").read_text().splitlines()
            if line.startswith("0::")
        )
        mounted = re.search(
            r"^\S+ \S+ \S+ (\S+) (\S+) .* - cgroup2 ", (proc / "mountinfo").read_text(), re.M
        )
        if mounted:
            root, top = mounted.groups()
            folder = Path(top) / own.removeprefix(root).lstrip("/")
            yield folder
            if folder != Path(top):
                yield folder.parent


def _sweep(parent: Path) -> None:
    """Removes the groups of killed processes, which could not remove them."""
    for group in parent.glob("agentworld-*-*"):
        pid = group.name.split("-")[1]
        if not Path("/proc", pid).exists():
            remove(group)
