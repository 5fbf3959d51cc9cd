"""A bound on the memory of a sandbox as a whole: a cgroup of its own, where one can be made.

One can be made in a folder of version 2 that this process may write and in which memory is counted:
as root of a machine, or under systemd's user manager. In most pods none can be; there the pod's
limit holds, and the kernel kills a sandbox before it kills a step.
"""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_SELF = Path("/proc/self")


def confine(pid: int, num_bytes: int, proc: Path = _SELF) -> Path | None:
    """Bounds a process and all that it will start; returns the folder of its group, or null."""
    for parent in _folders(proc):
        _sweep(parent)
        group = parent / f"agentworld-{os.getpid()}-{secrets.token_hex(4)}"
        with suppress(OSError):
            if "memory" not in (parent / "cgroup.subtree_control").read_text().split():
                continue
            group.mkdir()
            (group / "memory.max").write_text(str(num_bytes))
            with suppress(OSError):  # a kernel that does not count what is swapped
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
    """The group of this process, and its parent: only a root group has processes and children."""
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
    """Removes the groups of processes that were killed and so removed none."""
    for group in parent.glob("agentworld-*-*"):
        pid = group.name.split("-")[1]
        if not Path("/proc", pid).exists():
            remove(group)
