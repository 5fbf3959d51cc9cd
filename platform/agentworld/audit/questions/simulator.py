"""The agents that a simulator trained, and its runs without an agent."""

from collections.abc import Iterator, Sequence

from agentworld.audit.checks.edges import EdgeAudit, as_signed, edge_to, edges_of
from agentworld.audit.checks.run import RunVerification, verification_of
from agentworld.audit.read.sources import (
    Sources,
    find_simulator,
    manifest_of,
)
from agentworld.lineage.base import RegisteredAgent
from agentworld.records.base import Digest, Record, Sentence
from agentworld.records.run import AgentRun
from agentworld.records.statements.edge import Edge


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
    agents = agents_of(runs, sources)
    run_ids = {agent.run.id for agent in agents}
    verifications = {run.id: verification_of(run.id, sources) for run in runs if verify}
    return SimulatorAudit(
        simulator=simulator,
        world_model=str(version) if version else None,
        world_model_artifact=manifest.artifact if manifest else None,
        agents=agents,
        unregistered=tuple(_find_unregistered(simulator, agents, sources)),
        other_runs=tuple(run for run in runs if run.id not in run_ids),
        problems=tuple(garbled),
        evidence={run: verification for run, verification in verifications.items() if verification},
        at=sources.moment,
    )


def agents_of(runs: Sequence[AgentRun], sources: Sources) -> tuple[AgentOrigin, ...]:
    """The registered agents of these runs, whatever simulator their trainers name."""
    by_run: dict[str, list[RegisteredAgent]] = {}
    for simulator in sorted({run.simulator for run in runs}):
        for agent in sources.agents_in(simulator):
            by_run.setdefault(agent.run, []).append(agent)
    return tuple(
        _to_origin(agent, run, sources)
        for run in runs
        for agent in by_run.get(run.id) or _load_agents(run, sources)
    )


def _to_origin(agent: RegisteredAgent, run: AgentRun, sources: Sources) -> AgentOrigin:
    edge = edge_to(agent.ref.name, agent, sources, None if sources.at else run)
    signed_run = as_signed(run, edge)
    return AgentOrigin(agent=str(agent.ref), artifact=agent.artifact, run=signed_run, edge=edge)


def _load_agents(run: AgentRun, sources: Sources) -> Iterator[RegisteredAgent]:
    for ref, agent in sources.read_each(sources.agents_of(run), sources.registry.agent):
        yield RegisteredAgent.of(ref, agent)


def _find_unregistered(
    simulator: Digest, agents: tuple[AgentOrigin, ...], sources: Sources
) -> Iterator[Edge]:
    if sources.evidence is None:
        return
    keys = {(agent.run.id, agent.artifact, agent.agent.partition("@")[0]) for agent in agents}
    for edge in edges_of(simulator, sources.ledger.attestations, sources.evidence):
        if (edge.run, edge.claim.artifact, edge.claim.agent) not in keys:
            yield edge
