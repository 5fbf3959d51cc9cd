"""Processes that start at once: forks of a process that only imported what they need.

They inherit no state from tests.
"""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from agentworld.engine.process import LOOPBACK, free_port

_FORKS = multiprocessing.get_context("forkserver")
_TRAINER = ("agentworld.train.next_token",)
_PODS = (
    *("agentworld_operator.main", "agentworld.serving.main"),
    *("agentworld_pipelines.stages", "agentworld.steps.collect"),
)
_PARENT = "pytest.__main__"
"""Each fork imports the program of its parent."""
_SECONDS = 300

Work = Callable[..., object]
"""A function of a module that another process can import."""


def start(log: Path, work: Work, *arguments: object, **environment: str) -> ForkServerProcess:
    """Starts a training in this process's environment; its output goes to a log."""
    return _fork(_TRAINER, log, _on_one_thread, work, *arguments, **environment)


class Forked:
    """A process of a pod with the interface of `subprocess.Popen`; its output goes to a log."""

    def __init__(self, log: Path, work: Work, *arguments: object, **environment: str) -> None:
        self._process = _fork(_PODS, log, work, *arguments, **environment)

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Raises if it does not end in time."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutError(f"it did not end in {timeout} s")
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()

    @property
    def pid(self) -> int:
        pid = self._process.pid
        assert pid is not None
        return pid


def run_with_ranks(folder: Path, work: Work, *arguments: object, num: int = 2) -> None:
    """Runs work in several processes, with the ranks that torchrun would set.

    Their logs are in the folder.
    """
    port = free_port()
    size = {"WORLD_SIZE": str(num), "LOCAL_WORLD_SIZE": str(num)}
    rendezvous = {"MASTER_ADDR": LOOPBACK, "MASTER_PORT": str(port), **size}
    logs = [folder / f"rank-{rank}.log" for rank in range(num)]
    processes = [
        start(log, work, *arguments, **rendezvous, RANK=str(rank), LOCAL_RANK=str(rank))
        for rank, log in enumerate(logs)
    ]
    for process, log in zip(processes, logs, strict=True):
        process.join(_SECONDS)
        assert process.exitcode == 0, log.read_text()


def _fork(
    modules: Sequence[str], log: Path, work: Work, *arguments: object, **environment: str
) -> ForkServerProcess:
    # The first fork of a test session decides; later ones import the rest themselves.
    _FORKS.set_forkserver_preload([*modules, _PARENT, "machines.fork_server"])
    log.write_bytes(b"")
    variables = {**os.environ, **environment}
    process = _FORKS.Process(target=_run, args=(log, variables, work, arguments), daemon=True)
    process.start()
    return process


def _run(log: Path, environment: dict[str, str], work: Work, arguments: tuple[object, ...]) -> None:
    log_file = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(log_file, 1)
    os.dup2(log_file, 2)
    os.environ.clear()
    os.environ.update(environment)
    work(*arguments)


def _on_one_thread(work: Work, *arguments: object) -> None:
    import torch

    torch.set_num_threads(1)
    work(*arguments)
