"""A real PostgreSQL server while a block runs, in a separate folder."""

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import URL, create_engine
from sqlalchemy.exc import OperationalError

from agentworld.engine.process import LOOPBACK, free_port
from waiting import DEADLINE

_USER = "agentworld"
_GRACE_SECONDS = 10.0


class Server(NamedTuple):
    """A server on the loopback that requires a password."""

    port: int
    password: str
    process: subprocess.Popen[bytes]

    def url(self, database: str, **parts: str) -> str:
        """The address of a database; `parts` (username, password) replace the correct ones."""
        url_parts = {"username": _USER, "password": self.password, "host": LOOPBACK}
        url = URL.create("postgresql+psycopg", port=self.port, database=database)
        return url.set(**{**url_parts, **parts}).render_as_string(hide_password=False)

    def run(self, statement: str) -> None:
        """Runs one statement outside of any transaction, as the server's superuser."""
        engine = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql(statement)
        finally:
            engine.dispose()

    @contextmanager
    def database(self, options: str = "") -> Iterator[str]:
        """The address of an empty database, which is dropped after the block, even if it has
        connections.
        """
        name = f"test_{secrets.token_hex(4)}"
        self.run(f"CREATE DATABASE {name} {options}")
        try:
            yield self.url(name)
        finally:
            self.run(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def running() -> Iterator[Server]:
    """Starts a server and ends it; it also ends with this process."""
    with tempfile.TemporaryDirectory(prefix="postgres-") as name:
        folder, password = Path(name), secrets.token_hex(8)
        _create(folder, password)
        with (folder / "log").open("wb") as log:
            port = free_port()
            process = subprocess.Popen(
                [*_as_nobody(), *_dies_with_us(), *_server(folder / "data", port)],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        server = Server(port, password, process)
        try:
            _wait_until_ready(server, folder / "log")
            yield server
        finally:
            _end(process)


def programs() -> Path:
    """The folder of the server's programs, with clients of the same version."""
    return Path(_program("postgres")).parent


def _create(folder: Path, password: str) -> None:
    file = folder / "password"
    file.write_text(password)
    if os.geteuid() == 0:
        for path in (folder, file):
            shutil.chown(path, "nobody")
    words = f"--username={_USER} --pwfile={file} --auth=scram-sha-256 --locale=C --encoding=UTF8"
    command = [_program("initdb"), "-D", str(folder / "data"), "--no-sync", *words.split()]
    result = subprocess.run(
        [*_as_nobody(), *command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def _server(data: Path, port: int) -> list[str]:
    settings = {
        "listen_addresses": LOOPBACK,
        "port": port,
        "unix_socket_directories": "",
        "shared_buffers": "32MB",
    }
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return [_program("postgres"), "-D", str(data), *options]


def _program(name: str) -> str:
    """Debian keeps these off the path, in a folder for each version."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    path = shutil.which(name, path=os.pathsep.join([*map(str, folders), os.environ["PATH"]]))
    assert path, f"{name} is not installed; run `make database`"
    return path


def _as_nobody() -> list[str]:
    # PostgreSQL refuses to run as root.
    words = "setpriv --reuid=nobody --regid=nogroup --clear-groups"
    return words.split() if os.geteuid() == 0 else []


def _dies_with_us() -> list[str]:
    # A separate process, because changing the user clears the parent-death signal.
    return ["setpriv", "--pdeathsig", "INT"]


def _wait_until_ready(server: Server, log: Path) -> None:
    deadline = time.monotonic() + DEADLINE
    while True:
        try:
            return server.run("SELECT 1")
        except OperationalError:
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(log.read_text()) from None
            time.sleep(0.05)


def _end(process: subprocess.Popen[bytes]) -> None:
    # SIGINT ends it cleanly without waiting for clients.
    process.send_signal(signal.SIGINT)
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
