"""An agent's run: opened with one simulator, owner of its episodes, closed with its weights."""

from typing import Literal

from pydantic import Field

from agentworld.records.base import Digest, Record


class RunOpening(Record):
    """What is known when a run is opened."""

    agent: str
    """The name of the agent that is to be made."""
    starting_weights: Digest
    purpose: Literal["training", "evaluation"] = "training"
    opened_by: str = ""
    """Who asked for it."""
    simulator: str | None = None
    """The digest, or an alias that becomes one when it is stored; null takes what answers."""


class RunClosing(Record):
    """What a run made."""

    final_weights: Digest
    signature: str | None = None
    """A DSSE envelope in which the step that wrote the weights says so; null is a mere claim."""


class AgentRun(Record):
    """One run; `simulator` never changes, `closing` is set once."""

    id: str
    opening: RunOpening
    simulator: Digest
    closing: RunClosing | None = None
    num_episodes: int = 0
    num_steps: int = 0
    log_length: int = Field(0, ge=0)
    """Entries of its log."""

    @property
    def final_weights(self) -> Digest | None:
        """The weights that it was closed with."""
        return self.closing.final_weights if self.closing else None
