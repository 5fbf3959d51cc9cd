"""What a step says of its own work, signed with the steps' key, and kept like what is declared.

Who registers a version or validates an agent writes that where others write too. What was signed of
it lies with the ledger, so that it is missed.
"""

from abc import abstractmethod
from typing import ClassVar, Literal

from pydantic import Field

from agentworld.records.agent_use import AgentName
from agentworld.records.attestation import AttestationKind
from agentworld.records.base import Digest, Record
from agentworld.records.declaration import LedgerColumns, SubjectDeclaration
from agentworld.records.report import AgentReport

StepStatementKind = Literal["registration", "validation"]


class StepStatement(Record):
    """One that is handed in to be kept."""

    kind: StepStatementKind
    envelope: str = Field(max_length=2**20)
    """In which a step signed it."""


class Links(Record):
    """What a version is made of in the registry, by the registry's own names."""

    run: str = ""
    """That registered it."""
    model: str = ""
    """That it was logged as."""
    inputs: tuple[str, ...] = ()
    """Models that the run names as its inputs."""


class IdempotentDeclaration(SubjectDeclaration):
    """Of those that say the same the first stays."""

    @property
    @abstractmethod
    def same(self) -> tuple[object, ...]:
        """What those that say the same have in common."""


class RegisteredVersion(IdempotentDeclaration):
    """A version of the registry, as whoever registered it left it there."""

    kind: ClassVar[AttestationKind] = "registration"
    predicate_type: ClassVar[str] = "urn:agentworld:registered-version:v1"
    folder: ClassVar[str] = "registered-versions"

    registered_as: AgentName
    version: int = Field(ge=1)
    artifact: Digest
    run: str
    """That made an agent; empty for a world model."""
    record: Digest
    """Of the canonical JSON of its record."""
    links: Links
    at: str

    @property
    def ref(self) -> str:
        """As people write it."""
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


class Validation(IdempotentDeclaration):
    """What an agent was seen to do in the live environment, beside a simulator."""

    kind: ClassVar[AttestationKind] = "validation"
    predicate_type: ClassVar[str] = "urn:agentworld:validation:v1"
    folder: ClassVar[str] = "live-validations"

    artifact: Digest
    """The agent's, after its RL."""
    imitated: Digest
    """Before its RL."""
    step: str
    """The name of the step's folder, which is of what it read."""
    report: AgentReport
    at: str

    @property
    def same(self) -> tuple[object, ...]:
        return self.artifact, self.imitated, self.step, self.report

    @property
    def columns(self) -> LedgerColumns:
        return LedgerColumns(self.artifact, self.report.simulator, "", self.at)

    @property
    def subject_digest(self) -> Digest:
        return self.artifact


STEP_STATEMENTS: dict[AttestationKind, type[RegisteredVersion] | type[Validation]] = {
    "registration": RegisteredVersion,
    "validation": Validation,
}
