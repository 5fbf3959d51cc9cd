"""A live validation of an agent; it is checked against the report in the store."""

from typing import ClassVar

from agentworld.records.base import Digest
from agentworld.records.report import AgentReport
from agentworld.records.statements.base import About, LedgerColumns, StepRecord


class Validation(StepRecord):
    """An agent's results in the live environment and in a simulator."""

    kind: ClassVar[str] = "validation"
    predicate_type: ClassVar[str] = "urn:agentworld:validation:v1"
    folder: ClassVar[str] = "live-validations"
    about: ClassVar[About] = "weights"

    artifact: Digest
    """The agent's weights after its RL."""
    imitated: Digest
    """Its weights before RL."""
    step: str
    """The name of the step's folder, which is derived from its inputs."""
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


KIND = Validation
