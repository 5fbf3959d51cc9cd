"""What a data set of shell episodes leaves out."""

from collections.abc import Iterable
from itertools import pairwise

from agentworld.domains.shell.grammar import read_screen
from agentworld.records.trajectory import Turn

_UNKNOWN_COMMAND = 127


def without_retries(turns: Iterable[Turn]) -> list[bool]:
    """False for the second of two equal turns whose command is unknown.

    Such a command changes nothing, and so the later turns keep a true history.
    """
    turns = list(turns)
    results = [not _is_retry(before, turn) for before, turn in pairwise(turns)]
    return [True, *results] if turns else []


def _is_retry(before: Turn, turn: Turn) -> bool:
    return turn == before and read_screen(turn.observation).status == _UNKNOWN_COMMAND
