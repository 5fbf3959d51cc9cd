"""A server process of our own: started, waited for, and ended with everything it started."""

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
"""Those from 30,000 on are Kubernetes' to forward."""
_CONNECTION_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DRAWS = 1_000
_recent_ports: deque[int] = deque(maxlen=_DRAWS)
_GRACE_SECONDS = 10.0
_TAIL_BYTES = 2_000


class Server(NamedTuple):
    """A running server process and the file that its output goes to."""

    name: str
    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raises EngineError with the end of the log when the process is gone."""
        status = self.process.poll()
        if status is not None:
            raise EngineError(f"{self.name} ended with status {status}; {self._tail()}")

    def wait_until_ready(self, path: str, seconds: float, stopping: Event | None = None) -> None:
        """Returns when `path` answers 200; raises EngineError when that takes too long, or is
        over before.
        """
        deadline = time.monotonic() + seconds
        while not _answers(self.url + path):
            self.check()
            if stopping and stopping.is_set():
                raise EngineError(f"{self.name} was not wanted any more before it was ready")
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
    """Starts a server in a process group of its own and ends the group when the block ends.

    `environment` comes on top of this process's own, or of what is `inherited` of that. Raises
    EngineError when the server ended by itself while the block ran. The calling thread must
    outlive the block: the server ends with the thread that started it.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*_parent_death_command(), *command],
            # Not among the words, where everybody could read a password.
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
        # What failed may only be what a dead server looks like from outside.
        server.check()
        raise
    finally:
        _end(process)


def _inherit_environment(names: Collection[str] | None) -> dict[str, str]:
    """This process's environment, or these of it."""
    variables = os.environ.items()
    return {name: value for name, value in variables if names is None or name in names}


def free_port() -> int:
    """A port of the loopback that nobody listens on, another one at each call.

    The system gives it to no connection meanwhile, and two processes hardly draw the same.
    Raises InputError where none is free.
    """
    ports = _server_ports()
    for _ in range(_DRAWS):
        port = secrets.choice(ports)
        if port not in _recent_ports and _can_listen(port):
            _recent_ports.append(port)
            return port
    raise InputError(f"no port from {ports.start} to {ports.stop - 1} is free; end other servers")


def _server_ports() -> range:
    """Below those of connections; any where these begin so low that few are left."""
    first = int(_CONNECTION_PORTS.read_text().split()[0]) if _CONNECTION_PORTS.exists() else 32_768
    below = range(_PORTS.start, min(first, _PORTS.stop))
    return below if len(below) > 2 * _DRAWS else range(_PORTS.start, 65_536)


def _can_listen(port: int) -> bool:
    with suppress(InputError):
        check_free(port)
        return True
    return False


def check_free(port: int) -> None:
    """Raises InputError where somebody listens there, who would be taken for what is started."""
    with socket.socket() as probe:
        # As a server binds: what an ended one left behind is no hindrance.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise InputError(
                f"port {port} cannot be had ({error.strerror}); name another"
            ) from error


def _parent_death_command() -> list[str]:
    # We may end by SIGKILL ourselves, after which no code of ours ends the group.
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
        # Whatever the server started and left behind.
        _signal_group(process, signal.SIGKILL)
        process.wait()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
