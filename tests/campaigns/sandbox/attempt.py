"""One attempt to get out of a sandbox, or to leave something in it or behind it."""

from typing import Literal, NamedTuple

Kind = Literal[
    "files", "calls", "network", "memory", "processes", "state", "prompt", "claim", "terminal"
]

WON = 'echo ES""CAPED'
"""What a command does after something that it should not have been able to do."""
SEEN = "ESCAPED"
TOKEN = "kolu-4711-tane"
"""What an attempt leaves wherever it can; nobody may see it later, or elsewhere."""


class EscapeAttempt(NamedTuple):
    """Commands of one episode."""

    kind: Kind
    name: str
    actions: tuple[str, ...]


def attempts_of(kind: Kind, *actions: str) -> list[EscapeAttempt]:
    """One for each command, named by it."""
    return [EscapeAttempt(kind, action, (action,)) for action in actions]


def perl(script: str) -> str:
    """A command for what no other program asks of the kernel."""
    return f"perl -e '{script}'"
