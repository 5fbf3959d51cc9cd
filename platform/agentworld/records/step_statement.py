"""A step's signed statement for the ledger."""

from pydantic import Field

from agentworld.records.base import Record


class StepStatement(Record):
    """A statement that a step signed."""

    kind: str
    envelope: str = Field(max_length=2**20)
    """The envelope with the step's signature."""
