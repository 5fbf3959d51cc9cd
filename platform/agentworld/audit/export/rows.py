"""Rows of which simulator trained which agent: the source of every export format."""

from collections.abc import Iterator

from agentworld.audit.checks.edges import EdgeAudit, as_signed, edge_to
from agentworld.audit.read.sources import Sources, manifest_of
from agentworld.errors import NotFound
from agentworld.lineage.base import Agent, VersionRef
from agentworld.records.base import Digest, Record
from agentworld.records.run import AgentRun


class TrainedAgentRow(Record):
    """A registered agent, and the ledger's record of its training."""

    version: VersionRef
    artifact: Digest
    run: str
    served: AgentRun | None
    """The ledger's run; null if it has none."""
    world_model: VersionRef | None
    world_model_artifact: Digest | None
    data: Digest | None
    """The data set of the world model's last stage."""
    edge: EdgeAudit | None
    """The edge with its grade; null if the store has no keys."""


def trained_agents(sources: Sources) -> Iterator[TrainedAgentRow]:
    """The rows of all registered agents, ordered by name and version."""
    shared = sources.for_many()
    refs = [version.ref for version in sources.versions(kind="agent")]
    for ref, agent in shared.read_each(refs, shared.registry.agent):
        yield _load_trained(ref, agent, shared)


def _load_trained(ref: VersionRef, agent: Agent, sources: Sources) -> TrainedAgentRow:
    try:
        run = sources.run(agent.run)
    except NotFound:
        run = None
    manifest = manifest_of(run.simulator, sources.store) if run else None
    version, world_model = sources.first_world_model(sources.world_models_of(manifest))
    stages = world_model.stages if world_model else ()
    edge = edge_to(ref.name, agent, sources, run)
    return TrainedAgentRow(
        version=ref,
        artifact=agent.artifact,
        run=agent.run,
        served=as_signed(run, edge) if run else None,
        world_model=version,
        world_model_artifact=manifest.artifact if manifest else None,
        data=stages[-1].data if stages else None,
        edge=edge,
    )
