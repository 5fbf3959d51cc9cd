"""Live validations of agents: the reports of finished validation steps.

A step signs its report, and the ledger keeps the statement with the whole report. An unsigned
report in a store is from a step without a key, or forged: it is shown but proves nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Self

from agentworld.audit.checks.mirror import find_rows, verified_pairs
from agentworld.audit.read.evidence import Signature
from agentworld.audit.read.sources import Sources
from agentworld.errors import EvidenceError, InputError
from agentworld.lineage.base import Agent
from agentworld.records.attestation import Attestation
from agentworld.records.base import Digest, Record
from agentworld.records.report import AgentReport, Estimate
from agentworld.records.report import read_report as read_any
from agentworld.records.statements.validation import Validation
from agentworld.storage.receipts import (
    RECEIPT,
    FinishedStep,
    read_receipt,
    step_that_made,
    step_that_read,
)

_STEP = "validate"


class LiveValidation(NamedTuple):
    """A live validation."""

    report: AgentReport
    signature: Signature | None
    """The signature of the step; null if unsigned."""


class LiveLink(Record):
    """The agent's live success before and after its RL."""

    report: Digest
    num_tasks: int
    """The number of held-out tasks; each was tried once before RL and once after it."""
    episodes: int
    successes_before: int
    successes_after: int
    gain: Estimate
    """The gain in the success rate, paired by task."""
    commands: int
    signature: Signature | None = None
    """The signature of the step; null if unsigned."""

    @classmethod
    def of(cls, validation: LiveValidation) -> Self:
        """The figures of a validation."""
        report = validation.report
        before, after = report.imitated.live, report.trained.live
        return cls(
            report=report.digest,
            num_tasks=after.num,
            episodes=sum(score.live.num for score in report.scores.values()),
            successes_before=_successes(before),
            successes_after=_successes(after),
            gain=report.live_gain,
            commands=report.live_steps,
            signature=validation.signature,
        )


def validation_of(agent: Agent, simulator: Digest, sources: Sources) -> LiveValidation | None:
    """The validation that an agent was registered with, whose digest is signed with it; for an
    agent registered without one, the newest in its simulator. Null if there is none.

    Raises EvidenceError if the report does not match its receipt.
    """
    return validation_of_weights(agent.artifact, agent.report, simulator, sources)


def validation_of_weights(
    artifact: Digest, registered_report: str | None, simulator: Digest, sources: Sources
) -> LiveValidation | None:
    """Like `validation_of`, for an agent's weights and the digest of the registry's report."""
    if registered_report:
        with _reading():
            step = step_that_made(sources.store, _STEP, registered_report)
    else:
        step = newest_validation(sources.store, artifact, simulator, sources.at)
    report = read_report(step) if step else None
    signed = [
        (row, validation)
        for row, validation in _read_signed(sources, artifact)
        if (registered_report or simulator)
        in (validation.report.digest, validation.report.simulator)
    ]
    if signed:
        row, validation = signed[-1]
        return LiveValidation(validation.report, Signature.of(row, validation))
    return LiveValidation(report, signature=None) if report else None


def newest_validation(
    store: Path, artifact: Digest, simulator: Digest, at: datetime | None
) -> FinishedStep | None:
    """The newest validation of these weights in a simulator, up to a time (null is now); raises
    EvidenceError if a receipt cannot be read.
    """
    with _reading():
        return step_that_read(store, _STEP, at, agent=artifact, simulator=simulator)


def read_report(step: FinishedStep) -> AgentReport:
    """Reads a finished validation; raises EvidenceError if it was replaced."""
    with _reading():
        report = read_any(step.folder / "report.json")
    if not isinstance(report, AgentReport) or report.digest != step.receipt.output:
        raise EvidenceError(f"the live validation in {step.folder} was changed; restore it")
    return report


def validation_problems(sources: Sources, artifact: Digest | None = None) -> Iterator[str]:
    """Reports in this store that do not match their receipts or signatures: all, or those signed
    for an agent.
    """
    signed: dict[str, list[Validation]] = {}
    for _, validation in _read_signed(sources, artifact):
        signed.setdefault(validation.step, []).append(validation)
    receipts = sorted((sources.store / "steps" / _STEP).glob(f"*/{RECEIPT}"))
    for step in signed if artifact else [receipt.parent.name for receipt in receipts]:
        if problem := validation_problem(sources.store, step, signed.get(step, [])):
            yield problem


def validation_problem(store: Path, step: str, signed: Sequence[Validation]) -> str | None:
    """The reason why a step's report matches none of the step's signed ones; null if it matches, if
    none is signed, and if the store lacks it.
    """
    folder = store / "steps" / _STEP / step
    if not (folder / RECEIPT).exists():
        return None
    try:
        with _reading():
            finished_step = FinishedStep(folder, read_receipt(folder))
        report = read_report(finished_step)
    except EvidenceError as error:
        return str(error)
    inputs = [finished_step.receipt.inputs.get(name) for name in ("agent", "imitated", "simulator")]
    own = [validation for validation in signed if validation.report == report]
    if not signed or inputs in [[e.artifact, e.imitated, e.report.simulator] for e in own]:
        return None
    return (
        f"the live validation in {folder} is not the one of {signed[-1].artifact} that its step"
        " signed; restore it"
    )


@contextmanager
def _reading() -> Iterator[None]:
    """Raises EvidenceError for unreadable files."""
    try:
        yield
    except InputError as error:
        raise EvidenceError(f"a live validation cannot be read ({error}); restore it") from error


def _read_signed(
    sources: Sources, artifact: Digest | None = None
) -> list[tuple[Attestation, Validation]]:
    """The oldest first, each with its row."""
    if sources.evidence is None:
        return []
    rows = find_rows(Validation, sources.ledger.attestations, artifact)
    return sorted(verified_pairs(rows, Validation, sources.evidence), key=lambda pair: pair[1].at)


def _successes(estimate: Estimate) -> int:
    return round(estimate.mean * estimate.num)
