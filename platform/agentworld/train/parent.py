"""The model that a training starts from."""

from pathlib import Path
from typing import NamedTuple

from agentworld.records.checkpoint import Checkpoint


class Parent(NamedTuple):
    """A model's folder."""

    folder: Path
    address: str | None = None
    """The address of a fetched base model; null for a folder, and for a stage of this project."""
    chat_template: str | None = None
    """Replaces the model's own template."""
    checkpoint: Checkpoint | None = None
    """The record of the training of this project that made it; null for any other base."""

    @property
    def from_scratch(self) -> bool:
        """Whether its first stage is known to have started from random weights."""
        return self.checkpoint is not None and self.checkpoint.from_scratch
