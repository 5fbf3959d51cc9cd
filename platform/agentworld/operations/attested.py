"""Requests the signed edge of an agent when it is registered."""

import asyncio
from pathlib import Path

from agentworld.audit.read.sources import world_models_of
from agentworld.lineage.base import Registry
from agentworld.operations.ledger import trusted_steps
from agentworld.operations.registry import find_world_model
from agentworld.operations.runs import run_backend
from agentworld.records.base import Digest
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.run import AgentRun
from agentworld.records.simulator import SimulatorManifest
from agentworld.records.statements.edge import Claim, SignedEdge
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore


def request_edge(
    name: str, checkpoint: Checkpoint, run: AgentRun, registry: Registry, store: Path
) -> SignedEdge:
    """The edge from the run's simulator to the agent that is registered under this name."""
    simulator = SimulatorStore(store).find(run.simulator)
    (starting_weights,) = checkpoint.parents
    claim = Claim(
        agent=name,
        artifact=checkpoint.artifact,
        starting_weights=starting_weights,
        simulator=checkpoint.simulator or run.simulator,
        world_model=simulator.manifest.artifact,
        data=_data(simulator.manifest, registry, store),
    )
    return asyncio.run(_attest(run, claim, simulator, store))


async def _attest(
    run: AgentRun, claim: Claim, simulator: PinnedSimulator, store: Path
) -> SignedEdge:
    async with run_backend(simulator, store) as backend:
        return await backend.attest(run.id, claim)


def _data(manifest: SimulatorManifest, registry: Registry, store: Path) -> tuple[Digest, ...]:
    """The data that the simulator's weights were trained on, from the registry."""
    refs = world_models_of(manifest, registry)
    _, world_model = find_world_model(refs, registry, trusted_steps(store))
    stages = world_model.stages if world_model else ()
    return tuple(dict.fromkeys(stage.data for stage in stages if stage.data))
