"""A pytest process with separate folders and a separate network, whose output goes to a file."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from getpass import getuser
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Self

import psutil

from lanes.results import LaneResults
from waiting import wait_for

ROOT = Path(__file__).parents[2]
_OWN_NETWORK = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
_TORCH_CACHE = "TORCHINDUCTOR_CACHE_DIR"


@contextmanager
def lanes_folder(parent: str | None = None) -> Iterator[Path]:
    """A folder for the files of lanes, while a block runs."""
    with TemporaryDirectory(prefix="agentworld-tests-", dir=parent) as name:
        Path(name).chmod(0o755)  # the tests' PostgreSQL runs as another user
        yield Path(name)


class LaneProcess:
    """A pytest process of some of the tests.

    It has a separate loopback, so that no other process can take its ports, and it ends with this
    process. Only root can make a separate loopback.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        *arguments: str,
        scratch: Path | None = None,
        shares_network: bool = False,
    ) -> None:
        self.name = name
        self._shares_network = shares_network
        self._folder = folder / name
        self._scratch = scratch or self._folder
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._network = ""
        self._network_file: int | None = None
        self.results_file = self._folder / "results.jsonl"

    def start(self) -> Self:
        """Starts its tests."""
        scratch = self._scratch / f"tmp-{self.name}"
        self._folder.mkdir(parents=True)
        scratch.mkdir(parents=True)
        command = [
            *("setpriv", "--pdeathsig", "KILL"),
            *(() if self._shares_network else _OWN_NETWORK),
            *(sys.executable, "-m", "pytest", f"--basetemp={scratch / 'pytest'}"),
            *(f"--results={self.results_file}", *self._arguments),
        ]
        environment = {_TORCH_CACHE: _torch_cache(), **os.environ, "TMPDIR": str(scratch)}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        if not self._shares_network:
            self._hold_network()
        return self

    def _hold_network(self) -> None:
        """While its file is open, no other network gets the number of this one."""
        wait_for(lambda: not self.is_running or _network(self._process.pid) != _network("self"))
        with suppress(FileNotFoundError):  # it has ended
            self._network_file = os.open(f"/proc/{self._process.pid}/ns/net", os.O_RDONLY)
            self._network = os.readlink(f"/proc/self/fd/{self._network_file}")

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """None if it was not started or has not ended."""
        return self._process.returncode if self._process else None

    @property
    def output(self) -> str:
        """The complete output of the process."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def results(self) -> LaneResults:
        """The results of the tests that have ended."""
        return LaneResults.read(self.results_file)

    def end(self) -> None:
        """Kills its remaining processes, including servers in separate sessions, and removes its
        files.
        """
        if self._process:
            self._process.kill()
            self._process.wait()
            while self._network and (remaining := _processes_in(self._network)):
                for process in remaining:
                    with suppress(psutil.NoSuchProcess):
                        process.kill()
        if self._network_file is not None:
            os.close(self._network_file)
            self._network, self._network_file = "", None
        shutil.rmtree(self._scratch / f"tmp-{self.name}", ignore_errors=True)

    @property
    def _log(self) -> Path:
        return self._folder / "output.txt"


def _network(pid: int | str) -> str:
    """The network namespace of a process; empty if it has ended."""
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/net")
    return ""


def _processes_in(network: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if _network(process.pid) == network]


def _torch_cache() -> str:
    """The default location of torch's compiled code; `make setup` has filled it."""
    return str(Path(gettempdir(), f"torchinductor_{getuser()}"))


def deadline(seconds: int) -> tuple[str, ...]:
    """Pytest's options with which a test that takes longer fails and ends its process, with the
    stack of each thread.
    """
    settings = (f"faulthandler_timeout={seconds}", "faulthandler_exit_on_timeout=true")
    return tuple(word for setting in settings for word in ("-o", setting))


@contextmanager
def busy_core() -> Iterator[None]:
    """Keeps one core of this machine busy."""
    command = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-c", "while True: pass"]
    process = subprocess.Popen(command)
    try:
        yield
    finally:
        process.kill()
        process.wait()
