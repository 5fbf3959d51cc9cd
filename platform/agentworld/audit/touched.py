"""The agents that a simulator trained, and its runs that made none."""

from collections.abc import Iterator
from itertools import chain

from agentworld.audit.sources import (
    Sources,
    find_simulator,
    manifest_of,
    verification_of,
    world_models_of,
)
from agentworld.audit.verify import RunVerification
from agentworld.lineage.base import Registry
from agentworld.records.base import Digest, Record
from agentworld.records.run import AgentRun


class TrainedAgent(Record):
    """A registered agent and the run that made it."""

    agent: str
    artifact: Digest
    run: AgentRun


class SimulatorAudit(Record):
    """The answer to: which agents did this simulator touch?"""

    simulator: Digest
    world_model: str | None
    world_model_artifact: Digest | None
    agents: tuple[TrainedAgent, ...]
    other_runs: tuple[AgentRun, ...]
    """Runs that it served and that made no registered agent: evaluations, and what was cut off."""
    evidence: dict[str, RunVerification]
    """Whether each run's record is the one that was signed; empty where the store has no keys."""


def audit_simulator(name: str, sources: Sources) -> SimulatorAudit:
    """Everything that a simulator, named by an alias or the start of its digest, took part in."""
    simulator = find_simulator(name, sources)
    manifest = manifest_of(simulator, sources.store)
    versions = world_models_of(manifest, sources.registry)
    runs = sources.ledger.runs_of_simulator(simulator)
    agents = tuple(chain.from_iterable(_agents_of(run, sources.registry) for run in runs))
    made = {agent.run.id for agent in agents}
    verified = {run.id: verification_of(run, sources) for run in runs}
    return SimulatorAudit(
        simulator=simulator,
        world_model=str(versions[0]) if versions else None,
        world_model_artifact=manifest.artifact if manifest else None,
        agents=agents,
        other_runs=tuple(run for run in runs if run.id not in made),
        evidence={run: found for run, found in verified.items() if found},
    )


def _agents_of(run: AgentRun, registry: Registry) -> Iterator[TrainedAgent]:
    for ref in registry.agents_of(run.id) if run.final_weights else ():
        yield TrainedAgent(agent=str(ref), artifact=registry.agent(ref).artifact, run=run)
