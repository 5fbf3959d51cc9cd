"""Starts a training, with or without a fault, and observes its processes."""

import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NamedTuple

from agentworld.engine.process import LOOPBACK, free_port
from campaigns.harness.journal import read
from campaigns.training.faulty import Attempt, Fault, take_part
from machines.forked import start
from waiting import DEADLINE

_NOTICE_SECONDS = 20.0
"""The time in which training processes can notice that another one has ended; then torchrun
terminates the others.
"""


class Outcome(NamedTuple):
    """The result of one attempt."""

    attempt: Attempt
    statuses: Sequence[int | None]
    """By rank; null for a process that did not end, and was killed."""
    logs: Sequence[Path]
    lines: Sequence[Mapping[str, Any]]
    """The attempt's journal."""

    @property
    def succeeded(self) -> bool:
        return all(status == 0 for status in self.statuses)

    @property
    def steps(self) -> Sequence[Mapping[str, Any]]:
        """The lines of the finished steps."""
        return [line for line in self.lines if line["kind"] == "step"]

    @property
    def fault(self) -> Fault | None:
        """The fault, if it happened."""
        return self.attempt.fault if any(line["kind"] == "fault" for line in self.lines) else None


def carry_out(attempt: Attempt, num_ranks: int, folder: Path) -> Outcome:
    """Runs `num_ranks` processes until all have ended."""
    size = {"WORLD_SIZE": str(num_ranks), "LOCAL_WORLD_SIZE": str(num_ranks)}
    rendezvous = {"MASTER_ADDR": LOOPBACK, "MASTER_PORT": str(free_port()), **size}
    logs = [folder / f"{attempt.number:04}-rank-{rank}.log" for rank in range(num_ranks)]
    processes = [
        start(log, take_part, attempt, **rendezvous, RANK=str(rank), LOCAL_RANK=str(rank))
        for rank, log in enumerate(logs)
    ]
    _wait_until(lambda: _have_ended(processes) or any(p.exitcode for p in processes), DEADLINE)
    _wait_until(lambda: _have_ended(processes), _NOTICE_SECONDS)
    for process in processes:
        process.terminate()
    _wait_until(lambda: _have_ended(processes), DEADLINE)
    statuses = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
        process.join()
    lines = [line for line in read(attempt.journal) if line["attempt"] == attempt.number]
    return Outcome(attempt, statuses, logs, lines)


def _have_ended(processes: Sequence[ForkServerProcess]) -> bool:
    return not any(process.is_alive() for process in processes)


def _wait_until(holds: Callable[[], bool], seconds: float) -> None:
    """Returns when the condition holds, or after `seconds`."""
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
