"""Opens the cached answers of endpoints for a step."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from agentworld.scoring.answers import AnswerStore

_STORE = "agentworld.operations.answers"
"""Loaded by name, as `training_run` is: the cache does not change answers, so a change of its code
must not repeat requests or trainings.
"""


def open_answers(store: Path) -> AnswerStore:
    """The answers in a step's store, which all its steps share."""
    open_store: Callable[[Path], AnswerStore] = import_module(_STORE).open_answers
    return open_store(store)
