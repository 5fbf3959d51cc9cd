"""What a training starts from."""

from pathlib import Path
from typing import NamedTuple


class Parent(NamedTuple):
    """A model's folder."""

    folder: Path
    address: str | None = None
    """Where a base model was fetched from; null for a folder and for a stage of ours."""
    chat_template: str | None = None
    """Takes the place of the model's own."""
    from_scratch: bool = False
    """Whether its first stage began with random weights."""
