"""The edge from a simulator to an agent, joined from signed records.

One end is the run's log, which the simulator's service signed; the other is the run's closing, in
which the step that wrote the weights signed them. The trainer's claim is compared with both.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agentworld.records.run import AgentRun
from agentworld.records.statements.edge import Claim, Edge, Traffic
from agentworld.signing.checkpoint import RunCheckpoint


class RunEvidence(NamedTuple):
    """The ledger's records of the run that an agent names."""

    run: AgentRun
    checkpoint: RunCheckpoint | None
    """The newest one with a valid signature."""
    problems: tuple[str, ...] = ()
    """Reasons why a signature is invalid."""
    contradicting: tuple[str, ...] = ()
    """Runs in other simulators that were closed with the same weights."""


def join(claim: Claim, evidence: RunEvidence, at: str) -> Edge:
    """The edge with its grade; contradictions and missing records are reasons, not errors."""
    run, checkpoint = evidence.run, evidence.checkpoint
    reasons = (*_of_claim(claim, run), *_of_record(evidence), *evidence.problems)
    signed = run.closing is not None and run.closing.signature is not None
    return Edge(
        claim=claim,
        run=run.id,
        tenant=run.tenant,
        simulator=run.simulator,
        traffic=checkpoint.traffic if checkpoint else Traffic(),
        log_length=checkpoint.length if checkpoint else 0,
        root=checkpoint.root if checkpoint else None,
        grade="disputed" if reasons else "proven" if signed else "observed",
        reasons=reasons,
        at=at,
    )


def contradictions(run: AgentRun, same: Iterable[AgentRun]) -> Iterator[str]:
    """Sentences about runs with the `same` outcome that name another simulator.

    Another tenant's run is not named.
    """
    for other in same:
        if _contradicts(other, run):
            name = f"run {other.id}" if other.tenant == run.tenant else "a run of another tenant"
            yield f"{name} made the same weights in another simulator"


def _of_claim(claim: Claim, run: AgentRun) -> Iterator[str]:
    if claim.simulator != run.simulator:
        yield f"the run was served by {run.simulator}, and the trainer names {claim.simulator}"
    if claim.starting_weights != run.opening.starting_weights:
        yield (
            f"the run began with {run.opening.starting_weights}, and the trainer names"
            f" {claim.starting_weights}"
        )
    if run.closing is None:
        yield "the run is open, and nobody has said what it made"
    elif run.closing.final_weights != claim.artifact:
        yield f"the run made {run.closing.final_weights}, and {claim.artifact} is registered"
    if run.opening.purpose != "training":
        yield f"the run was opened for {run.opening.purpose}"


def _of_record(evidence: RunEvidence) -> Iterator[str]:
    checkpoint = evidence.checkpoint
    if checkpoint is None or checkpoint.length < evidence.run.log_length:
        yield "the end of the run's log is not signed"
    elif checkpoint.traffic.num_steps == 0:
        yield "the simulator answered no step of the run"
    yield from evidence.contradicting


def _contradicts(other: AgentRun, run: AgentRun) -> bool:
    """An evaluation ends with its starting weights, and an unsigned claim of another tenant is not
    evidence.
    """
    if other.simulator == run.simulator or other.closing is None:
        return False
    is_unchanged = other.opening.starting_weights == other.closing.final_weights
    is_evaluation = other.opening.purpose == "evaluation" and is_unchanged
    is_credible = other.tenant == run.tenant or other.closing.signature is not None
    return is_credible and not is_evaluation
