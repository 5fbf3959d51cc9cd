"""A pinned simulator, served while a step needs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentworld.client.simulator import SimulatorClient
from agentworld.recipes.serve import EngineRecipe
from agentworld.records.simulator import SimulatorManifest
from agentworld.simulate.local import serve_simulator
from agentworld.steps.addresses import ledger_url
from agentworld.steps.folders import MANIFEST, model_of


@contextmanager
def served_at(simulator: Path, engine: EngineRecipe, store: Path, logs: Path) -> Iterator[str]:
    """The address of the simulator in this folder."""
    # Absolute, because other processes read them.
    manifest, model = (simulator / MANIFEST).resolve(), model_of(simulator).resolve()
    with serve_simulator(manifest, model, engine, ledger_url(store), logs) as url:
        yield url


@contextmanager
def served(
    simulator: Path, engine: EngineRecipe, store: Path, logs: Path
) -> Iterator[SimulatorClient]:
    """A client that takes answers from the simulator in this folder and from no other."""
    digest = SimulatorManifest.read(simulator / MANIFEST).digest
    with served_at(simulator, engine, store, logs) as url:
        yield SimulatorClient(url, simulator=digest)
