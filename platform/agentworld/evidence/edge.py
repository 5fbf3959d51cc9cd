"""The edge from a simulator to an agent: joined from what was signed, and signed itself.

One end is the run's log, which the simulator's service signed; the other is the run's closing,
in which the step that wrote the weights signed them. What a trainer says is compared with both.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pydantic import JsonValue, ValidationError

from agentworld.errors import EvidenceError
from agentworld.evidence.checkpoint import RunCheckpoint
from agentworld.evidence.envelope import sign, verify
from agentworld.evidence.keys import Signer, TrustedKeys
from agentworld.evidence.statement import Statement, Subject
from agentworld.records.base import Digest, first_problem
from agentworld.records.edge import Claim, Edge, Traffic
from agentworld.records.run import AgentRun

PREDICATE_TYPE = "urn:agentworld:edge:v1"


class Observed(NamedTuple):
    """What the ledger holds of the run that an agent is said to come from."""

    run: AgentRun
    checkpoint: RunCheckpoint | None
    """The newest one whose signature holds."""
    problems: tuple[str, ...] = ()
    """Why a signature does not hold."""
    contradicting: tuple[str, ...] = ()
    """Runs in other simulators that were closed with the same weights, as they may be told."""


def join(claim: Claim, seen: Observed, at: str) -> Edge:
    """The edge with its grade; what contradicts or is missing is a reason and never an error."""
    run, checkpoint = seen.run, seen.checkpoint
    reasons = (*_of_claim(claim, run), *_of_record(seen), *seen.problems)
    signed = run.closing is not None and run.closing.signature is not None
    return Edge(
        claim=claim,
        run=run.id,
        tenant=run.tenant,
        simulator=run.simulator,
        traffic=checkpoint.traffic or Traffic() if checkpoint else Traffic(),
        log_length=checkpoint.length if checkpoint else 0,
        root=checkpoint.root if checkpoint else None,
        grade="disputed" if reasons else "proven" if signed else "observed",
        reasons=reasons,
        at=at,
    )


def sign_edge(edge: Edge, signer: Signer) -> bytes:
    """A DSSE envelope of an in-toto statement, whose subject is the agent's artifact."""
    return sign(_statement(edge), signer)


def verify_edge(envelope: bytes, trusted: TrustedKeys) -> Edge:
    """What one of the trusted keys signed; raises EvidenceError for anything else."""
    statement = verify(envelope, trusted)
    try:
        edge = Edge.model_validate(statement.predicate.get("edge"))
    except ValidationError as error:
        raise EvidenceError(f"what was signed is no edge ({first_problem(error)})") from error
    if statement != _statement(edge):
        raise EvidenceError("what was signed is not what an edge says; do not rely on it")
    return edge


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


def _of_record(seen: Observed) -> Iterator[str]:
    checkpoint = seen.checkpoint
    if checkpoint is None or checkpoint.length < seen.run.log_length:
        yield "the end of the run's log is not signed"
    elif checkpoint.traffic is None:
        yield "the run's log was signed before its traffic was"
    elif checkpoint.traffic.num_steps == 0:
        yield "the simulator answered no step of the run"
    for run in seen.contradicting:
        yield f"{run} made the same weights in another simulator"


def _statement(edge: Edge) -> Statement:
    return Statement(
        subject=(Subject.of(edge.claim.agent, edge.claim.artifact),),
        predicate_type=PREDICATE_TYPE,
        predicate={"edge": edge.model_dump(mode="json"), "materials": [*_materials(edge)]},
    )


def _materials(edge: Edge) -> Iterator[JsonValue]:
    """What the agent was made of, as in-toto names it."""
    yield _material("simulator", edge.simulator)
    yield _material("starting-weights", edge.claim.starting_weights)
    if edge.claim.world_model:
        yield _material("world-model", edge.claim.world_model)
    for data in edge.claim.data:
        yield _material("data", data)


def _material(name: str, digest: Digest) -> JsonValue:
    return dict(Subject.of(name, digest).model_dump(mode="json"))
