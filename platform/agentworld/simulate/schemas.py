"""What goes over the wire beside the records: requests, the manifest's envelope, failures."""

from typing import Literal

from pydantic import Field

from agentworld.records.base import Digest, Record


class RunClosing(Record):
    """Ends a run with the weights that it made."""

    final_weights: Digest


class StepRequest(Record):
    """The next action of an episode."""

    episode: str
    action: str
    step: int = Field(ge=1)
    """The number that this step will have: one more than the last answer's. An earlier number
    gets the recorded answer."""


class Health(Record):
    """The service listens and has verified its files."""

    simulator: Digest
    status: Literal["ready"] = "ready"


class Problem(Record):
    """What went wrong."""

    kind: str
    message: str
    retryable: bool


class Failure(Record):
    """The body of every answer that is none."""

    error: Problem
