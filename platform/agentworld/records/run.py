"""An agent's run: opened with one simulator, owns episodes, and is closed with its weights."""

from typing import Literal

from pydantic import Field

from agentworld.records.base import Digest, Name, Record

LOCAL_TENANT = "local"
"""The tenant of all data if access is not checked."""


class RunOpening(Record):
    """The fields of a run that are known when it is opened."""

    agent: Name
    """The name of the agent to train."""
    starting_weights: Digest
    purpose: Literal["training", "evaluation"] = "training"
    opened_by: Name = ""
    """The requester: with access checks, the authenticated caller."""
    simulator: Name | None = None
    """The simulator's digest, or an alias, which is stored as a digest; null takes the serving
    one.
    """


class RunClosing(Record):
    """The outcome of a run."""

    final_weights: Digest
    signature: Name | None = None
    """A DSSE envelope in which the step that wrote the weights signs them; null if it is only a
    claim.
    """


class AgentRun(Record):
    """One run; `simulator` and `tenant` never change, `closing` is set once."""

    id: str
    opening: RunOpening
    simulator: Digest
    tenant: str = LOCAL_TENANT
    """The run's owner; other tenants cannot see it."""
    closing: RunClosing | None = None
    num_episodes: int = 0
    num_steps: int = 0
    """The steps that its simulator answered, without those that forks copied."""
    log_length: int = Field(0, ge=0)
    """Entries of its log."""

    @property
    def purpose(self) -> str:
        """The purpose in its opening."""
        return self.opening.purpose

    @property
    def agent(self) -> str:
        """The agent's name in its opening."""
        return self.opening.agent

    @property
    def final_weights(self) -> Digest | None:
        """The weights in its closing."""
        return self.closing.final_weights if self.closing else None


class OpenedRun(Record):
    """The response to the caller who opened a run."""

    run: AgentRun
    token: str = Field(repr=False)
    """Gives access to this run only, which is all that an agent needs."""
