"""One attempt to escape from a sandbox, or to leave traces in it or after it."""

from typing import Literal, NamedTuple

Kind = Literal[
    "files", "calls", "network", "memory", "processes", "state", "prompt", "claim", "terminal"
]

WON = 'echo ES""CAPED'
"""The output of a command that succeeded with something forbidden."""
SEEN = "ESCAPED"
TOKEN = "kolu-4711-tane"
"""The trace that an attempt leaves; it must not be visible later, or elsewhere."""


class EscapeAttempt(NamedTuple):
    """The commands of one episode."""

    kind: Kind
    name: str
    actions: tuple[str, ...]


def attempts_of(kind: Kind, *actions: str) -> list[EscapeAttempt]:
    """One attempt for each command, named after it."""
    return [EscapeAttempt(kind, action, (action,)) for action in actions]


def perl(script: str) -> str:
    """A command for system calls that no other program makes."""
    return f"perl -e '{script}'"
