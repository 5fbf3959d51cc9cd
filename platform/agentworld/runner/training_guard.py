"""The proof that a training saw no live shell: while it runs, this process can open none."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

_SANDBOX = "bwrap"


class LiveShellRefused(RuntimeError):
    """A training that may only see the simulator tried to open a live shell."""


class Guard:
    """Counts the attempts to open a sandbox; each of them fails."""

    def __init__(self) -> None:
        self.num_refused = 0
        self.is_on = True

    def refuse(self) -> NoReturn:
        """Called where a sandbox would be started."""
        self.num_refused += 1
        raise LiveShellRefused("training may not open a live shell; it has the simulator alone")


@contextmanager
def no_live_shell() -> Iterator[Guard]:
    """While the block runs, every start of a sandbox in this process raises LiveShellRefused.

    All live commands run in sandboxes, and Python reports every process that it starts.
    """
    guard = Guard()

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if event == "subprocess.Popen" and guard.is_on and _starts_sandbox(arguments):
            guard.refuse()

    sys.addaudithook(hear)
    try:
        yield guard
    finally:
        guard.is_on = False  # a hook cannot be taken away


def _starts_sandbox(arguments: tuple[object, ...]) -> bool:
    return any(_SANDBOX in str(argument) for argument in arguments[:2])
