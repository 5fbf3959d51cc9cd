"""An agent's run: opened with one simulator, owner of its episodes, closed with its weights."""

from typing import Literal

from pydantic import Field

from agentworld.records.base import Digest, Name, Record

LOCAL_TENANT = "local"
"""Whose everything is where nobody asks who is there."""


class RunOpening(Record):
    """What is known when a run is opened."""

    agent: Name
    """The name of the agent that is to be made."""
    starting_weights: Digest
    purpose: Literal["training", "evaluation"] = "training"
    opened_by: Name = ""
    """Who asked for it: where access is checked, whom the service found."""
    simulator: Name | None = None
    """The digest, or an alias that becomes one when it is stored; null takes what answers."""


class RunClosing(Record):
    """What a run made."""

    final_weights: Digest
    signature: Name | None = None
    """A DSSE envelope in which the step that wrote the weights says so; null is a mere claim."""


class AgentRun(Record):
    """One run; `simulator` and `tenant` never change, `closing` is set once."""

    id: str
    opening: RunOpening
    simulator: Digest
    tenant: str = LOCAL_TENANT
    """Whose run it is; nobody else sees it."""
    closing: RunClosing | None = None
    num_episodes: int = 0
    num_steps: int = 0
    """That its simulator answered in it: without those that came with forks."""
    log_length: int = Field(0, ge=0)
    """Entries of its log."""

    @property
    def purpose(self) -> str:
        """What it was opened for."""
        return self.opening.purpose

    @property
    def agent(self) -> str:
        """What whoever opened it called the agent that is to be made."""
        return self.opening.agent

    @property
    def final_weights(self) -> Digest | None:
        """The weights that it was closed with."""
        return self.closing.final_weights if self.closing else None


class OpenedRun(Record):
    """What who opened a run is told."""

    run: AgentRun
    token: str = Field(repr=False)
    """Opens this run and nothing else: what an agent needs, and all that it needs."""
