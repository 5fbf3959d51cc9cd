"""Which simulator made an agent, as it was signed when the agent was registered.

The newest edge counts, by the time that was signed: rows can be put in another order. What does not
hold of it makes it disputed, whatever it said of itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Protocol

from agentworld.audit.checks.losses import lost_by_any, lost_of
from agentworld.audit.read.at_time import is_signed_as_of
from agentworld.audit.read.evidence import Evidence, copies_of
from agentworld.audit.read.sources import Sources
from agentworld.errors import EvidenceError, NotFound
from agentworld.ledger.attestations import Attestations
from agentworld.records.attestation import Attestation
from agentworld.records.base import Digest, Record, Sentence, digest_bytes
from agentworld.records.edge import Edge, Grade, SignedEdge
from agentworld.records.run import AgentRun
from agentworld.signing.edge import verify_edge
from agentworld.signing.envelope import key_of
from agentworld.signing.weights import closing_problem
from agentworld.statements.signer import EDGES, edge_name

UNSIGNED_ORIGIN = "nobody signed which simulator made it: it was registered before that"


class EdgeAudit(Record):
    """How far it can be relied on that a simulator made an agent."""

    grade: Grade
    reasons: tuple[Sentence, ...] = ()
    """Why it is disputed."""
    edge: Edge | None = None
    """As it was signed; null where none was, or none that verifies."""
    signed_by: str | None = None
    """The id of the key that signed it."""

    @property
    def num_copied(self) -> int:
        """Steps of its run that forks copied, as they were signed."""
        return self.edge.traffic.num_copied if self.edge else 0


class RegistryAgent(Protocol):
    """What the registry has of an agent."""

    @property
    def artifact(self) -> Digest:
        """Its weights."""
        ...

    @property
    def run(self) -> str:
        """That made it."""
        ...

    @property
    def edge_digest(self) -> Digest | None:
        """Of the envelope in which its edge was signed."""
        ...


def audit_edge(
    name: str, agent: RegistryAgent, attestations: Attestations, evidence: Evidence
) -> EdgeAudit:
    """Of an agent that is registered by a name."""
    copies = copies_of(f"{EDGES}/{agent.run}", evidence.mirror)
    rows = attestations.find("edge", run=agent.run)
    lost_names = lost_of(attestations, evidence, agent.run).names
    problems = [*_missing(rows, {name: copies[name] for name in copies if name not in lost_names})]
    edges = []
    for row in rows:
        try:
            edges.append((_verify_row(row, evidence), row.envelope))
        except EvidenceError as error:
            problems.append(f"the edge {row.name} does not verify: {error}")
    own = [(edge, signed) for edge, signed in edges if edge.claim.artifact == agent.artifact]
    own = [(edge, signed) for edge, signed in own if edge.claim.agent == name]
    if not own:
        signed = [*copies.values(), *(row.envelope for row in rows)]
        if agent.edge_digest and agent.edge_digest not in map(digest_bytes, signed):
            problems.append("the edge that it was registered with is gone; restore the ledger")
        # An edge that was signed, and is gone or does not verify, is told above.
        return EdgeAudit(grade="disputed", reasons=tuple(problems) or (UNSIGNED_ORIGIN,))
    edge, envelope = sorted(own, key=lambda pair: pair[0].at)[-1]
    # A version keeps the edge that it was registered with, also where a newer one was signed.
    if agent.edge_digest not in {digest_bytes(signed) for _, signed in own}:
        problems.append("the registry has another edge of it than the ledger")
    reasons = (*edge.reasons, *problems)
    grade: Grade = "disputed" if reasons else edge.grade
    return EdgeAudit(grade=grade, reasons=reasons, edge=edge, signed_by=key_of(envelope))


def edge_to(
    name: str, agent: RegistryAgent, sources: Sources, run: AgentRun | None = None
) -> EdgeAudit | None:
    """How far it is proven which simulator made an agent; null where nothing was signed.

    `run` is the agent's as it is now, where it was read already.
    """
    if sources.evidence is None:
        return None
    audit = audit_edge(name, agent, sources.ledger.attestations, sources.evidence)
    problem = _weights_problem(agent.run, run, sources) if audit.grade == "proven" else None
    if problem is None:
        return audit
    return audit.model_copy(update={"grade": "disputed", "reasons": (*audit.reasons, problem)})


def _weights_problem(run: str, current: AgentRun | None, sources: Sources) -> str | None:
    """Why no step that is trusted now signed what a run made."""
    try:
        record = current if current and current.closing else sources.ledger.run(run)
    except NotFound:
        return f"the ledger has no run {run}"
    except EvidenceError as error:
        return str(error)
    if record.closing is None or record.closing.signature is None:
        return "the signature that its run was closed with is gone"
    trusted = sources.evidence.step_keys if sources.evidence else None
    return closing_problem(record, trusted or {})


def as_signed(run: AgentRun, audit: EdgeAudit | None) -> AgentRun:
    """A run with the episodes and steps that were signed of it, where they were: its row's counts
    are for who looks at it, and nobody signed them.
    """
    if run.closing is None or audit is None or audit.edge is None:
        return run
    traffic = audit.edge.traffic
    counts = {"num_episodes": traffic.num_episodes, "num_steps": traffic.num_steps}
    return run.model_copy(update=counts)


def edges_of(simulator: Digest, attestations: Attestations, evidence: Evidence) -> list[Edge]:
    """Every edge of a simulator that verifies; of a run, an artifact and a name the newest."""
    edges = []
    for attestation in attestations.find("edge", simulator=simulator):
        with suppress(EvidenceError):  # which `edge_problems` tells
            edges.append(_verify_row(attestation, evidence))
    edges.sort(key=lambda edge: edge.at)
    return list({(e.run, e.claim.artifact, e.claim.agent): e for e in edges}.values())


def all_edges(attestations: Attestations, evidence: Evidence) -> Iterator[SignedEdge]:
    """Every edge that verifies."""
    for attestation in attestations.all():
        if attestation.kind == "edge":
            with suppress(EvidenceError):  # which `edge_problems` tells
                edge = _verify_row(attestation, evidence)
                yield SignedEdge(edge=edge, envelope=attestation.envelope.decode())


def edge_problems(
    attestations: Attestations, evidence: Evidence, at: datetime | None = None
) -> Iterator[str]:
    """What is wrong with all edges, or with those that were signed by a moment; each is told by its
    name, in which its run is.
    """
    copies = copies_of(EDGES, evidence.mirror)
    lost_names = lost_by_any(attestations, evidence.trusted)
    rows = [attestation for attestation in attestations.all() if attestation.kind == "edge"]
    signed = (name for name in copies.keys() - lost_names if is_signed_as_of(copies[name], at))
    yield from _missing(rows, {name: copies[name] for name in signed})
    for row in (row for row in rows if is_signed_as_of(row.envelope, at)):
        try:
            _verify_row(row, evidence)
        except EvidenceError as error:
            yield f"the edge {row.name} does not verify: {error}"


def _missing(attestations: Sequence[Attestation], copies: Mapping[str, bytes]) -> Iterator[str]:
    """A row may be older than its copy, for a moment; a copy never is older than its row.

    So the copies are those of before the rows were read.
    """
    rows = {attestation.name: attestation.envelope for attestation in attestations}
    for name, envelope in copies.items():
        if name not in rows:
            yield f"the edge {name} is gone from the ledger; restore it"
        elif rows.get(name, envelope) != envelope:
            yield f"the edge {name} is another one in the evidence mirror"


def _verify_row(row: Attestation, evidence: Evidence) -> Edge:
    edge = verify_edge(row.envelope, evidence.trusted)
    columns = (edge_name(edge.run, row.envelope), edge.claim.artifact, edge.simulator, edge.run)
    if (*columns, edge.at) != (row.name, row.subject, row.simulator, row.run, row.at):
        raise EvidenceError("its row says something else than what was signed; restore it")
    return edge
