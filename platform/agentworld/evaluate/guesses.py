"""What a predictor said, in a file, for a judge that scores it after the predictor is gone."""

import json
from collections.abc import Sequence
from pathlib import Path

from agentworld.records.file import input_errors, read_regular, write_whole

Guesses = Sequence[Sequence[str | None]]
"""By episode and target turn; null is a hole, and `NOTHING` an answer that failed."""


def write_guesses(path: Path, guesses: Guesses) -> None:
    """Whole or not at all; ASCII, for a model may write half of a character."""
    write_whole(path, json.dumps(guesses).encode())


def read_guesses(path: Path) -> Guesses:
    """Those of `write_guesses`."""
    with input_errors(path):
        guesses: Guesses = json.loads(read_regular(path))
    return guesses
