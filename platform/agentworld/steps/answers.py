"""Where a step finds what endpoints answered."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from agentworld.scoring.answers import AnswerStore

_STORE = "agentworld.operations.answers"
"""Loaded by its name, as `training_run` does: where answers are kept changes no answer, so that a
change of the code that keeps them asks and trains nothing again."""


def open_answers(store: Path) -> AnswerStore:
    """The answers in a step's store, which all its steps share."""
    open_store: Callable[[Path], AnswerStore] = import_module(_STORE).open_answers
    return open_store(store)
