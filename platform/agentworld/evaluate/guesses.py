"""A file with a predictor's answers, for a judge that scores them after the predictor has ended."""

import json
from collections.abc import Sequence
from pathlib import Path

from agentworld.records.file import input_errors, read_regular, write_whole

Guesses = Sequence[Sequence[str | None]]
"""By episode and target turn; null is a hole, and `NOTHING` a failed answer."""


def write_guesses(path: Path, guesses: Guesses) -> None:
    """Writes the file atomically; in ASCII, because a model may write lone surrogates."""
    write_whole(path, json.dumps(guesses).encode())


def read_guesses(path: Path) -> Guesses:
    """Reads a file of `write_guesses`."""
    with input_errors(path):
        guesses: Guesses = json.loads(read_regular(path))
    return guesses
