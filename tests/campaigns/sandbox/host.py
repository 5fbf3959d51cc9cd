"""The machine around the sandboxes: what they must not reach or change."""

import os
import secrets
import socket
import time
from collections.abc import Container, Iterator
from pathlib import Path
from typing import NamedTuple, Self

import psutil

from campaigns.sandbox.attempt import TOKEN

_UNPRIVILEGED_UID = 200_001
_SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/usr", "/")
_SECRET = "AGENTWORLD_SECRET"
END_SECONDS = 60.0
"""The time in which processes must end, also on a busy machine."""


class Census(NamedTuple):
    """Traces that sandboxes could leave on the machine, which others use, too."""

    mounts: str
    objects: tuple[str, ...]
    """The System V shared memory, messages and semaphores of the sandboxes' user."""
    keys: str
    files: tuple[str, ...]


class Host:
    """A secret in the environment and in a file, and a port and a socket that must not be
    reached.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.secret = secrets.token_hex(16)
        self.file = folder / "secret"
        self.file.write_text(self.secret)
        self.path = f"{folder}/socket"
        self._servers: list[socket.socket] = []

    def __enter__(self) -> Self:
        os.environ[_SECRET] = self.secret
        tcp = socket.create_server(("127.0.0.1", 0))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", tcp.getsockname()[1]))
        self._servers = [tcp, udp]
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        del os.environ[_SECRET]

    @property
    def port(self) -> int:
        """A port of TCP and of UDP."""
        return int(self._servers[0].getsockname()[1])

    def was_reached(self) -> bool:
        """Whether there was a connection to the port, or a message."""
        tcp, udp = self._servers
        for server, receive in ((tcp, tcp.accept), (udp, lambda: udp.recv(64))):
            server.setblocking(False)
            try:
                receive()
            except BlockingIOError:
                continue
            return True
        return False


def census() -> Census:
    """The present traces."""
    uid = os.geteuid() or _UNPRIVILEGED_UID
    users = Path("/proc/key-users")
    return Census(
        "".join(
            line
            for line in Path("/proc/self/mountinfo").read_text().splitlines()
            if " - tmpfs home " in line
        ),
        tuple(_system_v(str(uid))),
        "".join(
            line.split("/")[0]
            for line in (users.read_text() if users.exists() else "").splitlines()
            if line.split(":")[0].strip() == str(uid)
        ),
        tuple(str(path) for folder in _SHARED for path in Path(folder).glob(f"*{TOKEN}*")),
    )


def _system_v(uid: str) -> Iterator[str]:
    for path in sorted(Path("/proc/sysvipc").glob("*")):
        for line in path.read_text().splitlines()[1:]:
            words = line.split()
            if uid in words:
                yield f"{path.name} {' '.join(words[:3])}"


def family() -> list[psutil.Process]:
    """The descendants of this process and of the sandboxes' user."""
    return psutil.Process().children(recursive=True)


def alive(processes: list[psutil.Process]) -> list[str]:
    """The names of processes that do not end within their time."""
    _, remaining = psutil.wait_procs(processes, timeout=END_SECONDS)
    return [_name(item) for item in remaining]


def zombies(outside_processes: Container[psutil.Process]) -> list[str]:
    """Zombies of this process, without those in `outside_processes`."""
    deadline = time.monotonic() + END_SECONDS
    while True:
        new_processes = [item for item in family() if item not in outside_processes]
        zombie_processes = [item for item in new_processes if _status(item) == psutil.STATUS_ZOMBIE]
        if not zombie_processes or time.monotonic() > deadline:
            return [_name(item) for item in zombie_processes]
        time.sleep(0.02)


def _name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.NoSuchProcess:
        return str(process.pid)


def _status(process: psutil.Process) -> str:
    try:
        return str(process.status())
    except psutil.NoSuchProcess:
        return ""
