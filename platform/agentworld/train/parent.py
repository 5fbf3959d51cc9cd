"""What a training starts from."""

from pathlib import Path
from typing import NamedTuple

from agentworld.records.checkpoint import Checkpoint


class Parent(NamedTuple):
    """A model's folder."""

    folder: Path
    address: str | None = None
    """Where a base model was fetched from; null for a folder and for a stage of ours."""
    chat_template: str | None = None
    """Takes the place of the model's own."""
    checkpoint: Checkpoint | None = None
    """The record of the training of this project that made it; null for any other base."""

    @property
    def from_scratch(self) -> bool:
        """Whether its first stage is known to have begun with random weights."""
        return self.checkpoint is not None and self.checkpoint.from_scratch
