"""Restarts processes that have ended, and waits for conditions."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from inspect import isawaitable

from machines.program import Program
from waiting import DEADLINE

Command = tuple[list[str], dict[str, str]]
"""Arguments and environment."""


@dataclass
class RestartedProgram:
    """A program that is restarted after a pause."""

    program: Program
    port: int
    version: str
    command: Callable[["RestartedProgram"], Command]
    """Returns the command of its next start."""
    rests_until: float = 0.0

    def rest(self, seconds: float) -> None:
        """Delays its next start."""
        self.rests_until = time.monotonic() + seconds

    def start_if_due(self) -> None:
        if self.program.pid is None and time.monotonic() >= self.rests_until:
            self.program.start(*self.command(self))


async def keep_running(programs: Iterable[RestartedProgram]) -> None:
    """Restarts ended programs, until it is canceled."""
    programs = [*programs]
    while True:
        for program in programs:
            program.start_if_due()
        await asyncio.sleep(0.05)


async def until(
    holds: Callable[[], bool | Awaitable[bool]], problem: str, seconds: float = DEADLINE
) -> None:
    """Returns as soon as the condition holds; fails with `problem` after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        satisfied = holds()
        if await satisfied if isawaitable(satisfied) else satisfied:
            return
        assert time.monotonic() < deadline, problem
        await asyncio.sleep(0.1)
