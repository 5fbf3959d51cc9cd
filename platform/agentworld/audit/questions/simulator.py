"""The agents that a simulator trained, and its runs that made none."""

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
    """How far it is proven that the simulator made it; null where the store has no keys."""


class SimulatorAudit(Record):
    """The answer to: which agents did this simulator touch?"""

    simulator: Digest
    world_model: str | None
    world_model_artifact: Digest | None
    agents: tuple[AgentOrigin, ...]
    other_runs: tuple[AgentRun, ...]
    """Runs that it served and that made no registered agent: evaluations, and what was cut off."""
    unregistered: tuple[Edge, ...] = ()
    """Signed edges to agents that the registry does not have, or does not have any more."""
    problems: tuple[Sentence, ...] = ()
    """Runs of it that cannot be read."""
    evidence: dict[str, RunVerification]
    """Whether each run's record is still the one that was signed; empty where nobody asked, or the
    store has no keys."""
    at: str | None = None
    """The moment of which was asked; null is now. A record is verified as it is now."""


def audit_simulator(name: str, sources: Sources, *, verify: bool = False) -> SimulatorAudit:
    """Everything that a simulator, named by an alias or the start of its digest, took part in.

    By what was signed; to `verify` reads every step of its runs again.
    """
    sources = sources.for_many()
    simulator = find_simulator(name, sources)
    manifest = manifest_of(simulator, sources.store)
    version, _ = sources.first_world_model(sources.world_models_of(manifest))
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
    """The registered agents that these runs made, whatever simulator their trainers name."""
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
