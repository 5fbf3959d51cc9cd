"""A pinned simulator, served while a step needs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentworld.client.simulator import SimulatorClient
from agentworld.client.trajectory import TrajectoryLog
from agentworld.engine.programs import recipe_of
from agentworld.recipes.serve import EngineRecipe
from agentworld.records.simulator import Endpoint, SimulatorManifest
from agentworld.simulate.local import LOCAL, Listening, serve_simulator
from agentworld.simulate.stores import Stores
from agentworld.steps.folders import MANIFEST
from agentworld.steps.installed import check_installed
from agentworld.storage.simulators import PinnedSimulator


def pinned_engine(manifest: SimulatorManifest) -> EngineRecipe:
    """The engine that a simulator was pinned with; an endpoint's world needs none."""
    if isinstance(manifest.engine, Endpoint):
        return EngineRecipe()
    return recipe_of(manifest.engine)


@contextmanager
def served_at(
    simulator: Path,
    engine: EngineRecipe,
    store: Path,
    logs: Path,
    at: Listening = LOCAL,
) -> Iterator[str]:
    """The address of the simulator in this folder."""
    # Absolute, because other processes read it.
    pinned = PinnedSimulator.read(simulator.resolve())
    check_installed(pinned.manifest)
    manifest, stores = pinned.folder / MANIFEST, Stores.of(store)
    with serve_simulator(manifest, pinned.model, engine, stores, logs, at) as url:
        yield url


@contextmanager
def served(
    simulator: Path,
    engine: EngineRecipe,
    store: Path,
    logs: Path,
    trajectory: TrajectoryLog | None = None,
) -> Iterator[SimulatorClient]:
    """A client that takes answers from the simulator in this folder and from no other.

    `trajectory` takes down what is done with it, in the agent's own words.
    """
    digest = PinnedSimulator.read(simulator).digest
    with served_at(simulator, engine, store, logs) as url:
        yield SimulatorClient(url, simulator=digest, trajectory=trajectory)
