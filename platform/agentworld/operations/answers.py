"""The answers of endpoints in a store, which all its steps share."""

from pathlib import Path

from agentworld.runner.remote import fetch, keep
from agentworld.scoring.answers import ANSWERS, AnswerStore


def open_answers(store: Path) -> AnswerStore:
    """Those that there are by now, also in a bucket; a new one is put there as soon as it comes."""
    return AnswerStore(fetch(store / ANSWERS), keep)
