"""The agents that a simulator trained, and its runs without an agent."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from agentworld.audit.checks.edges import EdgeAudit, as_signed, edge_to, edges_of
from agentworld.audit.checks.run import RunVerification, verification_of
from agentworld.audit.checks.statements import registrations
from agentworld.audit.read.sources import (
    Sources,
    find_simulator,
    manifest_of,
)
from agentworld.errors import NotFound
from agentworld.lineage.base import Agent, RegisteredAgent, VersionRef, parse_record
from agentworld.records.base import Digest, Record, Sentence
from agentworld.records.garbled import read_each
from agentworld.records.run import AgentRun
from agentworld.records.statements.edge import Edge
from agentworld.records.statements.registration import RegisteredVersion


class AgentOrigin(Record):
    """A registered agent and the run that made it."""

    agent: str
    artifact: Digest
    run: AgentRun
    edge: EdgeAudit | None = None
    """The edge to its simulator with its grade; null if the store has no keys."""


class SimulatorAudit(Record):
    """The answer to: which agents did this simulator train?"""

    simulator: Digest
    world_model: str | None
    world_model_artifact: Digest | None
    agents: tuple[AgentOrigin, ...]
    other_runs: tuple[AgentRun, ...]
    """Runs that it served without a registered agent: evaluations and interrupted runs."""
    unregistered: tuple[Edge, ...] = ()
    """Signed edges to agents that are not, or no longer, in the registry."""
    problems: tuple[Sentence, ...] = ()
    """Its unreadable runs."""
    evidence: dict[str, RunVerification]
    """The verification of each run's record; empty if it was not requested, or the store has no
    keys.
    """
    at: str | None = None
    """The time asked about; null is now. Records are verified as they are now."""


def audit_simulator(name: str, sources: Sources, *, verify: bool = False) -> SimulatorAudit:
    """All runs and agents of a simulator, named by an alias or the start of its digest.

    Uses signed statements; `verify` reads every step of its runs again.
    """
    sources = sources.for_many()
    simulator = find_simulator(name, sources)
    manifest = manifest_of(simulator, sources.store)
    version = sources.world_model_served(manifest)
    runs, garbled = sources.runs_of_simulator(simulator)
    edges = _signed_edges(simulator, sources)
    runs_elsewhere = _load_runs_elsewhere(edges, runs, sources)
    agents = agents_of([*runs, *runs_elsewhere], sources)
    run_ids = {agent.run.id for agent in agents}
    run_names = [run.id for run in (*runs, *runs_elsewhere) if verify]
    verifications = {run: verification_of(run, sources) for run in run_names}
    return SimulatorAudit(
        simulator=simulator,
        world_model=str(version) if version else None,
        world_model_artifact=manifest.artifact if manifest else None,
        agents=agents,
        unregistered=tuple(_find_unregistered(edges, agents)),
        other_runs=tuple(run for run in runs if run.id not in run_ids),
        problems=tuple(garbled),
        evidence={run: verification for run, verification in verifications.items() if verification},
        at=sources.moment,
    )


def agents_of(runs: Sequence[AgentRun], sources: Sources) -> tuple[AgentOrigin, ...]:
    """The registered agents of these runs, whatever simulator their trainers name.

    Beside another agent of its run, an unsigned one is found only by its tags, because a search for
    each run is slow.
    """
    by_run: dict[str, list[RegisteredAgent]] = {}
    for simulator in sorted({run.simulator for run in runs}):
        for agent in sources.agents_in(simulator):
            by_run.setdefault(agent.run, []).append(agent)
    return tuple(
        _to_origin(agent, run, sources)
        for run in runs
        for agent in _all_agents(run, by_run.get(run.id) or [*_load_agents(run, sources)], sources)
    )


def _all_agents(
    run: AgentRun, agents: Sequence[RegisteredAgent], sources: Sources
) -> list[RegisteredAgent]:
    """These agents of a run and the signed ones whose tags were changed, by name and version."""
    signed = _load_signed(run, {str(agent.ref) for agent in agents}, sources)
    return sorted([*agents, *signed], key=lambda agent: (agent.ref.name, agent.ref.version))


def _load_signed(
    run: AgentRun, known_refs: set[str], sources: Sources
) -> Iterator[RegisteredAgent]:
    if sources.evidence is None:
        return
    attestations = sources.ledger.attestations
    rows = attestations.find(RegisteredVersion.kind, run=run.id)
    for subject in sorted({row.subject for row in rows} - known_refs):
        signed = registrations(attestations, sources.evidence, subject).newest
        if signed is None or signed.run != run.id:
            continue
        ref = VersionRef.parse(subject)
        with suppress(NotFound):  # `audit verify` reports a deleted version
            sources.check_registered(ref)
            record = sources.registry.stored(ref).record  # readable without the tag `kind`
            yield RegisteredAgent.of(ref, parse_record(Agent, ref, record or ""))


def _to_origin(agent: RegisteredAgent, run: AgentRun, sources: Sources) -> AgentOrigin:
    edge = edge_to(agent.ref.name, agent, sources, None if sources.at else run)
    signed_run = as_signed(run, edge)
    return AgentOrigin(agent=str(agent.ref), artifact=agent.artifact, run=signed_run, edge=edge)


def _load_agents(run: AgentRun, sources: Sources) -> Iterator[RegisteredAgent]:
    for ref, agent in sources.read_each(sources.agents_of(run), sources.registry.agent):
        yield RegisteredAgent.of(ref, agent)


def _signed_edges(simulator: Digest, sources: Sources) -> list[Edge]:
    if sources.evidence is None:
        return []
    return edges_of(simulator, sources.ledger.attestations, sources.evidence)


def _load_runs_elsewhere(
    edges: Sequence[Edge], runs: Sequence[AgentRun], sources: Sources
) -> list[AgentRun]:
    """The runs of signed edges that the ledger's rows ascribe to another simulator."""
    names = {edge.run for edge in edges} - {run.id for run in runs}
    return read_each(sorted(names), sources.run).records  # `audit verify` reports the others


def _find_unregistered(edges: Sequence[Edge], agents: Sequence[AgentOrigin]) -> Iterator[Edge]:
    keys = {(agent.run.id, agent.artifact, agent.agent.partition("@")[0]) for agent in agents}
    for edge in edges:
        if (edge.run, edge.claim.artifact, edge.claim.agent) not in keys:
            yield edge
