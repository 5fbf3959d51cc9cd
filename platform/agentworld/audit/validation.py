"""What an agent was seen to do in the live environment: the reports of finished validations."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentworld.audit.receipts import FinishedStep, step_that_made, step_that_read
from agentworld.errors import EvidenceError, InputError
from agentworld.lineage.base import Agent
from agentworld.records.base import Digest
from agentworld.records.report import AgentReport

_STEP = "validate"


def validation_of(agent: Agent, simulator: Digest, store: Path) -> AgentReport | None:
    """The validation that an agent was registered with, whose digest is signed with it; of an
    older one the newest in its simulator. Null where this store has none.

    Raises EvidenceError for a report that is not the one of its receipt.
    """
    if agent.report:
        with _reading():
            step = step_that_made(store, _STEP, agent.report)
    else:
        step = newest_validation(store, agent.artifact, simulator)
    return read_report(step) if step else None


def newest_validation(store: Path, artifact: Digest, simulator: Digest) -> FinishedStep | None:
    """Of these weights in a simulator; raises EvidenceError where a receipt cannot be read."""
    with _reading():
        return step_that_read(store, _STEP, agent=artifact, simulator=simulator)


def read_report(step: FinishedStep) -> AgentReport:
    """Of a finished validation; raises EvidenceError where somebody put another in its place."""
    with _reading():
        report = AgentReport.read(step.folder / "report.json")
    if report.digest != step.receipt.output:
        raise EvidenceError(f"the live validation in {step.folder} was changed; restore it")
    return report


@contextmanager
def _reading() -> Iterator[None]:
    """Raises EvidenceError for what somebody left so that it cannot be read."""
    try:
        yield
    except InputError as error:
        raise EvidenceError(f"a live validation cannot be read ({error}); restore it") from error
