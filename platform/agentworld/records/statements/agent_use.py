"""Which agent is used for what: people's names for its versions, and who gave them when.

It is checked against the registry's aliases.
"""

import re
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, StringConstraints

from agentworld.records.base import Digest, Label, Name, Record, ShortText
from agentworld.records.statements.base import Column, LedgerColumns, SignedRecord

AgentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$")]
"""As a registry and an evidence mirror both take it."""

_RESERVED = re.compile(r"latest|v\d+")


def _check_unreserved(alias: str) -> str:
    if _RESERVED.fullmatch(alias):
        raise ValueError(f"{alias!r} means something else to a registry; name it otherwise")
    return alias


AgentAlias = Annotated[Label, AfterValidator(_check_unreserved)]
"""What an agent is in use as: `production`, a shop, a robot."""


class AgentUseMove(Record):
    """Which version shall be in use from now on."""

    version: int = Field(ge=1, lt=2**31)
    artifact: Digest
    run: Name
    """That made it."""
    by: ShortText
    """Who wants it so."""
    reason: ShortText | None = None


class AgentUse(AgentUseMove, SignedRecord):
    """From then on this version was in use, or none any more."""

    kind: ClassVar[str] = "agent-use"
    noun: ClassVar[str] = "use of an agent"
    predicate_type: ClassVar[str] = "urn:agentworld:agent-use:v1"
    field: ClassVar[str] = "agent_use"
    folder: ClassVar[str] = "agent-uses"
    column: ClassVar[Column] = "name"

    name: AgentName
    alias: AgentAlias
    number: int = Field(ge=1)
    """1 for the first of this name and alias: their order, which no clock decides."""
    simulator: Digest
    """Of its run."""
    at: str
    ended: bool = False
    """It is taken out of use; this was the version."""

    @classmethod
    def describe_row(cls, name: str, columns: LedgerColumns) -> str:  # noqa: ARG003
        """By its name, in which the agent and the alias are."""
        return f"the use {name}"

    def is_of(self, value: str) -> bool:
        """Whether it is of the agent of this name."""
        return self.name == value

    @property
    def path(self) -> str:
        """With its number, which is the order of those of a name and an alias."""
        return f"{agent_uses_under(self.name, self.alias)}{self.number:06d}.dsse.json"

    @property
    def columns(self) -> LedgerColumns:
        return LedgerColumns(self.artifact, self.simulator, self.run, self.at)

    @property
    def subject_digest(self) -> Digest:
        return self.artifact

    @property
    def subject_name(self) -> str:
        return self.agent

    @property
    def agent(self) -> str:
        """As it is registered."""
        return f"{self.name}@{self.version}"

    def is_same_use(self, other: "AgentUse") -> bool:
        """Whether nothing changes by one after the other, whoever wants it and why."""
        return _meaning(self) == _meaning(other)


def agent_uses_under(name: str, alias: str) -> str:
    """Where the copies of an agent's name and an alias are."""
    return f"{AgentUse.folder_of(name)}/{alias}/"


def _meaning(agent_use: AgentUse) -> tuple[object, ...]:
    return (
        agent_use.name,
        agent_use.alias,
        agent_use.version,
        agent_use.artifact,
        agent_use.run,
        agent_use.ended,
    )


KIND = AgentUse
