"""A registration of a version; it is checked against the registry's record and its links."""

from typing import ClassVar

from pydantic import Field

from agentworld.records.base import Digest, Record
from agentworld.records.statements.alias import AgentName
from agentworld.records.statements.base import About, LedgerColumns, StepRecord


class Links(Record):
    """The sources of a version, by the registry's own names."""

    run: str = ""
    """The run that registered it."""
    model: str = ""
    """The model that it was logged as."""
    inputs: tuple[str, ...] = ()
    """The models among its run's inputs."""


class RegisteredVersion(StepRecord):
    """A version of the registry, as it was registered."""

    kind: ClassVar[str] = "registration"
    predicate_type: ClassVar[str] = "urn:agentworld:registered-version:v1"
    folder: ClassVar[str] = "registered-versions"
    about: ClassVar[About] = "version"

    registered_as: AgentName
    version: int = Field(ge=1)
    artifact: Digest
    run: str
    """The run that produced an agent; empty for a world model."""
    record: Digest
    """The digest of its record's canonical JSON."""
    links: Links
    at: str

    @property
    def ref(self) -> str:
        """NAME@VERSION."""
        return f"{self.registered_as}@{self.version}"

    @property
    def same(self) -> tuple[object, ...]:
        return self.ref, self.record

    @property
    def columns(self) -> LedgerColumns:
        return LedgerColumns(self.ref, "", self.run, self.at)

    @property
    def subject_digest(self) -> Digest:
        return self.artifact


KIND = RegisteredVersion
