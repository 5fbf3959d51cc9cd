"""Processes with torch and the trainer imported: forks of a process that did nothing else.

They start at once, and inherit no state from tests.
"""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from agentworld.engine.process import LOOPBACK, free_port

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["agentworld.train.next_token"])
_SECONDS = 300

Work = Callable[..., object]
"""A function of a module that another process can import."""


def start(log: Path, work: Work, *arguments: object, **environment: str) -> ForkServerProcess:
    """Starts this work in this process's environment; its output goes to a log."""
    variables = {**os.environ, **environment}
    process = _FORKS.Process(target=_work, args=(log, variables, work, arguments), daemon=True)
    process.start()
    return process


def run_with_ranks(folder: Path, work: Work, *arguments: object, num: int = 2) -> None:
    """Runs work in several processes, with the ranks that torchrun would set.

    Their logs are in the folder.
    """
    port = free_port()
    size = {"WORLD_SIZE": str(num), "LOCAL_WORLD_SIZE": str(num)}
    meeting = {"MASTER_ADDR": LOOPBACK, "MASTER_PORT": str(port), **size}
    logs = [folder / f"rank-{rank}.log" for rank in range(num)]
    processes = [
        start(log, work, *arguments, **meeting, RANK=str(rank), LOCAL_RANK=str(rank))
        for rank, log in enumerate(logs)
    ]
    for process, log in zip(processes, logs, strict=True):
        process.join(_SECONDS)
        assert process.exitcode == 0, log.read_text()


def _work(
    log: Path, environment: dict[str, str], work: Work, arguments: tuple[object, ...]
) -> None:
    import torch

    log_file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log_file, 1)
    os.dup2(log_file, 2)
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(1)
    work(*arguments)
