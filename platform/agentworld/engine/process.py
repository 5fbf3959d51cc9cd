"""A server process that is started, waited for, and ended with all its children."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import NamedTuple

import httpx

from agentworld.engine.http_client import open_client
from agentworld.errors import EngineError, InputError

LOOPBACK = "127.0.0.1"
_PORTS = range(15_000, 30_000)
"""Kubernetes forwards the ports from 30,000 on."""
_CONNECTION_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DRAWS = 1_000
_recent_ports: deque[int] = deque(maxlen=_DRAWS)
_GRACE_SECONDS = 10.0
_TAIL_BYTES = 2_000


class Server(NamedTuple):
    """A running server process and its log file."""

    name: str
    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raises EngineError with the end of the log if the process has ended."""
        status = self.process.poll()
        if status is not None:
            raise EngineError(f"{self.name} ended with status {status}; {self._tail()}")

    def wait_until_ready(self, path: str, seconds: float, stopping: Event | None = None) -> None:
        """Returns when `path` answers 200; raises EngineError if that takes too long, the process
        ends, or `stopping` is set.
        """
        deadline = time.monotonic() + seconds
        while not _answers(self.url + path):
            self.check()
            if stopping and stopping.is_set():
                raise EngineError(f"{self.name} was stopped before it was ready")
            if time.monotonic() > deadline:
                raise EngineError(f"{self.name} was not ready in {seconds:.0f} s; {self._tail()}")
            time.sleep(0.1)

    def _tail(self) -> str:
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
            end = file.read().decode(errors="replace")
        return f"the end of {self.log} says:\n{end.strip()}"


@contextmanager
def running(
    name: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    port: int,
    log: Path,
    *,
    inherited: Collection[str] | None = None,
) -> Iterator[Server]:
    """Starts a server in its own process group, and ends the group with the block.

    `environment` is added to this process's environment, or to the `inherited` part of it. Raises
    EngineError if the server ended by itself. The calling thread must outlive the block, because
    the server ends with the thread that started it.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*_parent_death_command(), *command],
            # not in the arguments, where other users could read a password
            env={**_inherit_environment(inherited), **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(name, f"http://{LOOPBACK}:{port}", process, log)
    try:
        yield server
        server.check()
    except Exception:
        # The block's error may be a consequence of the server's end.
        server.check()
        raise
    finally:
        _end(process)


def _inherit_environment(names: Collection[str] | None) -> dict[str, str]:
    """This process's environment, or the named variables of it."""
    variables = os.environ.items()
    return {name: value for name, value in variables if names is None or name in names}


def free_port() -> int:
    """A free port of the loopback, another one at each call.

    The system does not give it to outgoing connections, and two processes rarely choose the same.
    Raises InputError if no port is free.
    """
    ports = _server_ports()
    for _ in range(_DRAWS):
        port = secrets.choice(ports)
        if port not in _recent_ports and _can_listen(port):
            _recent_ports.append(port)
            return port
    raise InputError(f"no port from {ports.start} to {ports.stop - 1} is free; end other servers")


def _server_ports() -> range:
    """The ports below those of outgoing connections; all ports if few are below."""
    first = int(_CONNECTION_PORTS.read_text().split()[0]) if _CONNECTION_PORTS.exists() else 32_768
    below = range(_PORTS.start, min(first, _PORTS.stop))
    return below if len(below) > 2 * _DRAWS else range(_PORTS.start, 65_536)


def _can_listen(port: int) -> bool:
    with suppress(InputError):
        check_free(port)
        return True
    return False


def check_free(port: int) -> None:
    """Raises InputError if another program has the port, which would be taken for the server."""
    with socket.socket() as probe:
        # binds as a server does, so sockets of an ended process do not matter
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise InputError(
                f"port {port} is not available ({error.strerror}); name another"
            ) from error


def _parent_death_command() -> list[str]:
    # If this process ends by SIGKILL, no code of it can end the group.
    return ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []


def _answers(url: str) -> bool:
    try:
        with open_client(url, timeout_seconds=5.0) as client:
            return client.get(url).is_success
    except httpx.HTTPError:
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    _signal_group(process, signal.SIGTERM)
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
    finally:
        # processes that the server started and did not end
        _signal_group(process, signal.SIGKILL)
        process.wait()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
