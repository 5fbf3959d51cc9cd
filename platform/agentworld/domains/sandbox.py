"""A locked room for commands that a policy or a model chose; nothing runs outside it.

Bubblewrap gives its own user, network, process and file-system namespaces. The user is
a really unprivileged one even where the host's is root, because the kernel does not
count processes against root. The room is read-only but for one small tmpfs, and has no
/proc: a pod is not given one of its own, and the world is to be the same everywhere.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import IO, NamedTuple

from agentworld.domains.seccomp import filter_of
from agentworld.errors import SandboxUnavailable

HOME = "/home/agent"
_UNPRIVILEGED_UID = 200_001  # owns nothing on the host and has no entry in its passwd


class SandboxLimits(NamedTuple):
    """What one sandbox may take; all of them hold for everything inside together."""

    disk_bytes: int = 8 << 20
    memory_bytes: int = 96 << 20
    """Address space of one process; at most `processes` of them."""
    processes: int = 24
    file_bytes: int = 4 << 20
    cpu_seconds: int = 600
    """Processor time of one process."""


def open_sandbox(command: list[str], limits: SandboxLimits) -> subprocess.Popen[bytes]:
    """Starts a command in a new sandbox; its stdin and its merged output are pipes.

    Raises SandboxUnavailable where bubblewrap or user namespaces are missing.
    """
    check_sandbox()
    return _start(command, limits)


def stdin_of(process: subprocess.Popen[bytes]) -> IO[bytes]:
    """The pipe to a sandboxed process."""
    if process.stdin is None:
        raise ValueError("the process was started without a pipe to its input")
    return process.stdin


def stdout_of(process: subprocess.Popen[bytes]) -> IO[bytes]:
    """The pipe from a sandboxed process."""
    if process.stdout is None:
        raise ValueError("the process was started without a pipe from its output")
    return process.stdout


@cache
def check_sandbox() -> None:
    """Runs one command in a sandbox, once per process; raises SandboxUnavailable if that fails."""
    if shutil.which("bwrap") is None:
        raise SandboxUnavailable(
            "no sandbox: bubblewrap (bwrap) is not installed; run `make setup` or install the"
            " package bubblewrap"
        )
    process = _start(["/bin/true"], SandboxLimits())
    output, _ = process.communicate(timeout=30)
    if process.returncode != 0:
        said = output.decode(errors="replace").strip()[:200]
        raise SandboxUnavailable(
            f"no sandbox: bubblewrap failed ({said!r}); allow unprivileged user namespaces"
            " (sysctl kernel.unprivileged_userns_clone=1; for a pod, a seccompProfile that does)"
        )


def _start(command: list[str], limits: SandboxLimits) -> subprocess.Popen[bytes]:
    as_root = os.geteuid() == 0
    with _filter() as descriptor:
        return subprocess.Popen(
            [*_bubblewrap(limits, descriptor), *_prlimit(limits), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            cwd="/",
            env={"PATH": "/usr/bin:/bin"},
            user=_UNPRIVILEGED_UID if as_root else None,
            group=_UNPRIVILEGED_UID if as_root else None,
            extra_groups=[] if as_root else None,
            pass_fds=[descriptor],
        )


@contextmanager
def _filter() -> Iterator[int]:
    """A file of what may not be asked of the kernel, which bubblewrap reads to its end."""
    descriptor = os.memfd_create("filter")
    try:
        os.pwrite(descriptor, filter_of(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _bubblewrap(limits: SandboxLimits, filter_file: int) -> list[str]:
    # /dev and / are tmpfs of the sandbox's own user: left writable they would be memory
    # without a limit, hence the two remounts.
    return [
        *"bwrap --unshare-all --unshare-user --cap-drop ALL".split(),
        *["--seccomp", str(filter_file)],
        *"--die-with-parent --new-session".split(),
        *"--uid 1000 --gid 1000 --hostname world".split(),
        *"--ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/sbin /sbin".split(),
        *"--symlink usr/lib /lib --symlink usr/lib64 /lib64 --dev /dev".split(),
        *["--size", str(limits.disk_bytes), "--tmpfs", "/home"],
        *"--remount-ro /dev --remount-ro /".split(),
        *f"--clearenv --setenv HOME {HOME} --setenv PATH /usr/bin:/bin --setenv LC_ALL C".split(),
        *["--chdir", "/home", "--"],
    ]


def _prlimit(limits: SandboxLimits) -> list[str]:
    # Set inside the new user namespace, where the count of processes starts at zero.
    return [
        "/usr/bin/prlimit",
        f"--nproc={limits.processes}",
        f"--as={limits.memory_bytes}",
        f"--fsize={limits.file_bytes}",
        f"--cpu={limits.cpu_seconds}",
        "--core=0",
        "--nofile=64",
        "--",
    ]
