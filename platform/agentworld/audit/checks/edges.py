"""Checks the signed edge from an agent to its simulator.

The edge with the newest signed time counts, because rows can be reordered. A contradiction makes it
disputed, whatever its own grade.
"""

from collections.abc import Iterator
from typing import Protocol

from agentworld.audit.checks.mirror import check_statements, verified_pairs, verified_rows
from agentworld.audit.read.evidence import Evidence, Finding, Signature, as_of
from agentworld.audit.read.sources import Sources
from agentworld.errors import EvidenceError, NotFound
from agentworld.ledger.attestations import Attestations
from agentworld.lineage.base import Agent
from agentworld.records.base import Digest, digest_bytes
from agentworld.records.run import AgentRun
from agentworld.records.statements.edge import Edge, Grade, SignedEdge
from agentworld.signing.weights import closing_problem

UNSIGNED_ORIGIN = "no signed statement names its simulator"


class EdgeAudit(Finding):
    """The grade of an edge from a simulator to an agent, with its evidence."""

    grade: Grade
    edge: Edge | None = None
    """The signed edge; null if there is none, or none that verifies."""
    signature: Signature | None = None
    """The key and the time of the signature."""

    @property
    def num_copied(self) -> int:
        """The steps of its run that forks copied, as signed."""
        return self.edge.traffic.num_copied if self.edge else 0

    def disputed(self, *problems: str) -> "EdgeAudit":
        """The same edge with additional contradictions."""
        return self.model_copy(
            update={"grade": "disputed", "problems": (*self.problems, *problems)}
        )


class RegistryAgent(Protocol):
    """The registry's record of an agent."""

    @property
    def artifact(self) -> Digest:
        """The digest of its weights."""
        ...

    @property
    def run(self) -> str:
        """The run that produced it."""
        ...

    @property
    def edge_digest(self) -> Digest | None:
        """The digest of the envelope in which its edge was signed."""
        ...


def audit_edge(
    name: str, agent: RegistryAgent, attestations: Attestations, evidence: Evidence
) -> EdgeAudit:
    """The edge of an agent that is registered under a name, by the statements signed up to the
    evidence's time.
    """
    checked = check_statements(Edge, attestations, evidence, of=agent.run)
    problems = [*checked.problems]
    edges = [(checked.rows[path], edge) for path, edge in checked.verified.items()]
    own = [
        (row, edge)
        for row, edge in as_of(edges, evidence.at, lambda pair: pair[1].at)
        if (edge.claim.artifact, edge.claim.agent) == (agent.artifact, name)
    ]
    if not own:
        signed = [*checked.copies.values(), *(row.envelope for row in checked.rows.values())]
        if agent.edge_digest and agent.edge_digest not in map(digest_bytes, signed):
            problems.append("the edge that it was registered with is missing; restore the ledger")
        # A signed edge that is missing or does not verify is reported above.
        return EdgeAudit(
            subject=name, grade="disputed", problems=tuple(problems) or (UNSIGNED_ORIGIN,)
        )
    row, edge = sorted(own, key=lambda pair: pair[1].at)[-1]
    # A version keeps its first edge, even if a newer one is signed.
    if agent.edge_digest not in {digest_bytes(row.envelope) for row, _ in own}:
        problems.append("the registry and the ledger have different edges of it")
    problems = [*edge.reasons, *problems]
    return EdgeAudit(
        subject=name,
        grade="disputed" if problems else edge.grade,
        problems=tuple(problems),
        edge=edge,
        signature=Signature.of(row, edge),
    )


def edge_to(
    name: str, agent: RegistryAgent, sources: Sources, run: AgentRun | None = None
) -> EdgeAudit | None:
    """The evidence of the simulator that an agent names; null if nothing was signed.

    `run` is the agent's current run, if it was read already.
    """
    if sources.evidence is None:
        return None
    audit = audit_edge(name, agent, sources.ledger.attestations, sources.evidence)
    if audit.edge is None or audit.grade == "disputed":
        return audit
    problem = _run_problem(audit.edge, run, sources)
    return audit if problem is None else audit.disputed(problem)


def _run_problem(edge: Edge, current: AgentRun | None, sources: Sources) -> str | None:
    """The contradiction between an edge and the ledger's record of its run."""
    try:
        run = current if current and current.closing else sources.ledger.run(edge.run)
    except NotFound:
        return f"the ledger has no run {edge.run}"
    except EvidenceError as error:
        return str(error)
    if run.simulator != edge.simulator:
        return (
            f"the ledger says that {run.simulator} served its run, and the signed edge names"
            f" {edge.simulator}"
        )
    return _weights_problem(run, sources) if edge.grade == "proven" else None


def _weights_problem(run: AgentRun, sources: Sources) -> str | None:
    """The reason why no trusted step key signed the weights of a run."""
    if run.closing is None or run.closing.signature is None:
        return "the signature of its run's closing is missing"
    trusted = sources.evidence.step_keys if sources.evidence else None
    return closing_problem(run, trusted or {})


def as_signed(run: AgentRun, audit: EdgeAudit | None) -> AgentRun:
    """A run with the signed numbers of episodes and steps, if there are any: the counts in its row
    are unsigned.
    """
    if run.closing is None or audit is None or audit.edge is None:
        return run
    traffic = audit.edge.traffic
    counts = {"num_episodes": traffic.num_episodes, "num_steps": traffic.num_steps}
    return run.model_copy(update=counts)


def edges_of(simulator: Digest, attestations: Attestations, evidence: Evidence) -> list[Edge]:
    """The verified edges of a simulator; the newest for each run, artifact and name."""
    edges = verified_rows(attestations.find(Edge.kind, simulator=simulator), Edge, evidence)
    edges.sort(key=lambda edge: edge.at)
    return list({(e.run, e.claim.artifact, e.claim.agent): e for e in edges}.values())


def all_edges(attestations: Attestations, evidence: Evidence) -> Iterator[SignedEdge]:
    """All verified edges."""
    for row, edge in verified_pairs(attestations.find(Edge.kind), Edge, evidence):
        yield SignedEdge(edge=edge, envelope=row.envelope.decode())


def breaks_of_run(agent: Agent, run: AgentRun) -> Iterator[str]:
    """Contradictions between the registry's record of an agent and the ledger's record of its
    run.
    """
    checkpoint = agent.checkpoint
    if run.simulator != checkpoint.simulator:
        yield (
            f"the run was served by {run.simulator}, the checkpoint names {checkpoint.simulator}"
        )
    if run.final_weights != agent.artifact:
        yield (f"the run ended with {run.final_weights}, the version stands for {agent.artifact}")
    if checkpoint.parents != (run.opening.starting_weights,):
        weights, parents = run.opening.starting_weights, ", ".join(checkpoint.parents)
        yield f"the run began with {weights}, the checkpoint names {parents}"
