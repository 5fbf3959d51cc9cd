"""The cached answers of endpoints in a store, which all its steps share."""

from pathlib import Path

from agentworld.runner.remote import fetch, keep
from agentworld.scoring.answers import ANSWERS, AnswerStore


def open_answers(store: Path) -> AnswerStore:
    """The cached answers, also those in a bucket; a new answer is uploaded immediately."""
    return AnswerStore(fetch(store / ANSWERS), keep)
