"""What an agent was seen to do in the live environment: the reports of finished validations."""

from pathlib import Path

from agentworld.audit.receipts import FinishedStep, step_that_made, step_that_read
from agentworld.errors import EvidenceError
from agentworld.lineage.base import Agent
from agentworld.records.base import Digest
from agentworld.records.report import AgentReport

STEP = "validate"


def validation_of(agent: Agent, simulator: Digest, store: Path) -> AgentReport | None:
    """The validation that an agent was registered with, whose digest is signed with it; of an
    older one the newest in its simulator. Null where this store has none.

    Raises EvidenceError for a report that is not the one of its receipt.
    """
    if agent.report:
        return read_report(step_that_made(store, STEP, agent.report))
    return read_report(step_that_read(store, STEP, agent=agent.artifact, simulator=simulator))


def read_report(step: FinishedStep | None) -> AgentReport | None:
    """Of a finished validation; raises EvidenceError where somebody put another in its place."""
    if step is None:
        return None
    report = AgentReport.read(step.folder / "report.json")
    if report.digest != step.receipt.output:
        raise EvidenceError(f"the live validation in {step.folder} was changed; restore it")
    return report
