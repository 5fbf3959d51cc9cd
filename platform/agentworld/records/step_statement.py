"""What a step hands in of its own work, to be kept with the ledger."""

from pydantic import Field

from agentworld.records.base import Record


class StepStatement(Record):
    """A statement that a step signed."""

    kind: str
    envelope: str = Field(max_length=2**20)
    """In which a step signed it."""
