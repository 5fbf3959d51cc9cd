"""A sandbox for commands that a policy or a model chose; no such command runs outside it.

Bubblewrap creates separate user, network, process, IPC and file-system namespaces. The sandbox's
user is unprivileged even if this process is root, because the kernel does not count root's
processes. The file system is read-only except for one small tmpfs. There is no /proc unless a
profile asks for it: a pod cannot have its own, and a sandbox should be the same everywhere.
"""

import os
import re
import signal
import subprocess
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple

from agentworld.domains.cgroup import confine, remove
from agentworld.domains.polling import wait_ready
from agentworld.domains.programs import Program
from agentworld.domains.seccomp import Exemption, filter_of
from agentworld.errors import EnvironmentUnavailable

HOME = "/home/agent"
_UNPRIVILEGED_UID = 200_001  # owns nothing on the host and has no entry in its passwd
SANDBOX_PROGRAMS = (
    Program("bwrap", "bubblewrap"),
    Program("unshare", "util-linux"),
    Program("prlimit", "util-linux", path="/usr/bin"),
    Program("mount", "mount"),
)
_SECONDS_TO_END = 10.0
_MASKED = (
    "acpi asound interrupts kcore key-users keys latency_stats sched_debug scsi timer_list".split()
)
"""What container runtimes hide of /proc, because it shows the machine."""

# Bubblewrap's own tmpfs does not limit the number of files, so `mount` makes the disk before it
# starts. `read` waits for the line that is sent when the process is in its cgroup. A high
# oom_score_adj makes the kernel kill a sandbox first if memory runs out.
_PREPARE = (
    "read -r _ && echo 1000 >/proc/self/oom_score_adj"
    ' && mount -t tmpfs -o "$1" home /mnt && shift && exec "$@"'
)


class SandboxLimits(NamedTuple):
    """Limits of one sandbox; unless stated otherwise, all its processes share them."""

    disk_bytes: int = 8 << 20
    files: int = 2048
    """Files and folders on that disk."""
    memory_bytes: int = 96 << 20
    """Address space of one process; at most `processes` of them."""
    data_bytes: int = 96 << 20
    """Writable private memory of one process, for runtimes that reserve far more addresses."""
    total_memory_bytes: int = 512 << 20
    """Memory of all processes, if this process can create a cgroup; see `cgroup`."""
    processes: int = 24
    open_files: int = 64
    """Of one process."""
    file_bytes: int = 4 << 20
    cpu_seconds: int = 600
    """Processor time of one process."""


class SandboxAccess(NamedTuple):
    """What a command can use in addition to what every sandbox has."""

    folders: tuple[Path, ...] = ()
    """Folders of the machine, read-only and under the same paths."""
    exemptions: frozenset[Exemption] = frozenset()
    error_file: int = subprocess.STDOUT
    """The open file for the error output; by default it is merged into the output."""
    shows_processes: bool = False
    """A read-only /proc of the sandbox's own processes, where the machine allows one.

    The first process then has a capability that has no power in a namespace, CAP_WAKE_ALARM. The
    kernel refuses the first process's files and memory in /proc to processes without it, so what
    the first process starts for an agent must drop it (`setpriv`).
    """


class Sandbox:
    """A command in a sandbox of its own; its stdin and its output are pipes."""

    def __init__(
        self,
        command: list[str],
        limits: SandboxLimits,
        files: tuple[int, ...],
        access: SandboxAccess = SandboxAccess(),
    ) -> None:
        self._info, info = os.pipe()  # bubblewrap writes the id of the first process here
        try:
            self.process = _start(command, limits, files, info, access)
        except BaseException:
            os.close(self._info)
            raise
        finally:
            os.close(info)
        self._group = confine(self.process.pid, limits.total_memory_bytes)
        with suppress(BrokenPipeError):  # the process ended already; its output has the reason
            self.stdin.write(b"\n")

    @property
    def stdin(self) -> IO[bytes]:
        """The pipe to it."""
        if self.process.stdin is None:
            raise ValueError("the process was started without a pipe to its input")
        return self.process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """The pipe from it."""
        if self.process.stdout is None:
            raise ValueError("the process was started without a pipe from its output")
        return self.process.stdout

    def close(self) -> None:
        """Ends the command and everything in its sandbox; it leaves no process and no zombie."""
        if self._info < 0:
            return
        with suppress(ProcessLookupError):
            os.kill(self._first(), signal.SIGKILL)
        try:
            self.process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pipe in (self.stdin, self.stdout):
            pipe.close()
        os.close(self._info)
        self._info = -1
        if self._group:
            remove(self._group)

    def _first(self) -> int:
        """The id of the first process inside: the others end with it, and bubblewrap reaps it.

        If bubblewrap were killed instead, its child would become a zombie of a pod's first process.
        """
        is_readable, _ = wait_ready(self._info, _SECONDS_TO_END)
        info = os.read(self._info, 4096) if is_readable else b""
        if self.process.poll() is not None:
            raise ProcessLookupError
        first = re.search(rb'"child-pid": (\d+)', info)
        return int(first.group(1)) if first else self.process.pid


def open_sandbox(
    command: list[str],
    limits: SandboxLimits,
    files: tuple[int, ...] = (),
    access: SandboxAccess = SandboxAccess(),
) -> Sandbox:
    """Starts a command in a new sandbox; the command inherits the open files `files`.

    Raises EnvironmentUnavailable if bubblewrap or user namespaces are missing.
    """
    check_sandbox()
    if access.shows_processes and not can_show_processes():
        access = access._replace(shows_processes=False)
    return Sandbox(command, limits, files, access)


@cache
def check_sandbox() -> None:
    """Runs one command in a sandbox, once per process.

    Raises EnvironmentUnavailable if that fails.
    """
    for program in SANDBOX_PROGRAMS:
        if program.find() is None:
            raise EnvironmentUnavailable(
                f"no sandbox: {program.package} ({program.name}) is not installed; run `make setup`"
                f" or install the package {program.package}"
            )
    if (error := _try(SandboxAccess())) is not None:
        raise EnvironmentUnavailable(
            f"no sandbox: bubblewrap failed ({error!r}); allow unprivileged user namespaces"
            " (sysctl kernel.unprivileged_userns_clone=1; for a pod, a seccompProfile that does)"
        )


@cache
def can_show_processes() -> bool:
    """Whether a sandbox of this machine can have a /proc; the kernel allows none if the
    machine's own is covered in parts, as in most pods.
    """
    return _try(SandboxAccess(shows_processes=True)) is None


def _try(access: SandboxAccess) -> str | None:
    """Runs one command in a sandbox; returns the error output if that fails."""
    sandbox = Sandbox(["/bin/true"], SandboxLimits(), (), access)
    try:
        output, _ = sandbox.process.communicate(timeout=30)
    finally:
        sandbox.close()
    return output.decode(errors="replace").strip()[:200] if sandbox.process.returncode else None


def _start(
    command: list[str],
    limits: SandboxLimits,
    files: tuple[int, ...],
    info: int,
    access: SandboxAccess,
) -> subprocess.Popen[bytes]:
    as_root = os.geteuid() == 0
    with _filter(access.exemptions) as descriptor:
        return subprocess.Popen(
            [
                *_unshare(limits),
                *_bubblewrap(descriptor, info, access),
                *_prlimit(limits),
                *command,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=access.error_file,
            bufsize=0,
            cwd="/",
            env={"PATH": "/usr/bin:/bin"},
            user=_UNPRIVILEGED_UID if as_root else None,
            group=_UNPRIVILEGED_UID if as_root else None,
            extra_groups=[] if as_root else None,
            pass_fds=[descriptor, info, *files],
        )


@contextmanager
def _filter(exemptions: Collection[Exemption]) -> Iterator[int]:
    """The descriptor of a file with the seccomp filter, which bubblewrap reads."""
    descriptor = os.memfd_create("filter")
    try:
        os.pwrite(descriptor, filter_of(exemptions=exemptions), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _unshare(limits: SandboxLimits) -> list[str]:
    disk = f"size={limits.disk_bytes},nr_inodes={limits.files},mode=0755,nosuid,nodev"
    return [
        *"unshare --user --map-root-user --mount --".split(),
        *["/bin/sh", "-c", _PREPARE, "prepare", disk],
    ]


def _bubblewrap(filter_file: int, info: int, access: SandboxAccess) -> list[str]:
    # /dev and / are tmpfs. If they stayed writable, they would be memory without a limit, so they
    # are remounted read-only. A machine has few terminals, so the sandbox has none.
    return [
        *"bwrap --unshare-all --unshare-user --as-pid-1 --cap-drop ALL".split(),
        *["--seccomp", str(filter_file), "--info-fd", str(info)],
        *"--die-with-parent --new-session".split(),
        *"--uid 1000 --gid 1000 --hostname world".split(),
        *"--ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/sbin /sbin".split(),
        *"--symlink usr/lib /lib --symlink usr/lib64 /lib64 --dev /dev --tmpfs /dev/pts".split(),
        *"--bind /mnt /home".split(),
        *(word for folder in access.folders for word in ("--ro-bind", str(folder), str(folder))),
        *(_proc() if access.shows_processes else ()),
        *"--remount-ro /dev/pts --remount-ro /dev --remount-ro /".split(),
        *f"--clearenv --setenv HOME {HOME} --setenv PATH /usr/bin:/bin --setenv LC_ALL C".split(),
        *["--chdir", "/home", "--"],
    ]


def _proc() -> list[str]:
    # Were it not read-only, a command could make itself a later victim when memory runs out.
    masks = []
    for path in (Path("/proc", name) for name in _MASKED):
        if path.is_dir():
            masks += ["--tmpfs", str(path), "--remount-ro", str(path)]
        elif path.exists():
            masks += ["--ro-bind", "/dev/null", str(path)]
    return [*"--cap-add CAP_WAKE_ALARM --proc /proc".split(), *masks, "--remount-ro", "/proc"]


def _prlimit(limits: SandboxLimits) -> list[str]:
    # Set inside the new user namespace, where the count of processes starts at zero.
    return [
        "/usr/bin/prlimit",
        f"--nproc={limits.processes}",
        f"--as={limits.memory_bytes}",
        f"--data={limits.data_bytes}",
        f"--fsize={limits.file_bytes}",
        f"--cpu={limits.cpu_seconds}",
        *["--core=0", "--memlock=0", "--msgqueue=0", "--sigpending=256"],
        f"--nofile={limits.open_files}",
        "--",
    ]
