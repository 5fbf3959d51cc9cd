"""Serves a pinned simulator while a step needs it, or connects to the deployed service."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentworld.client.credential import ClientSettings, Credential
from agentworld.client.operator import OperatorClient
from agentworld.client.simulator import SimulatorClient
from agentworld.client.trajectory import TrajectoryLog
from agentworld.engine.programs import recipe_of
from agentworld.operations.installed import check_installed
from agentworld.recipes.serve import EngineRecipe
from agentworld.records.base import Digest
from agentworld.records.simulator import Endpoint, SimulatorManifest
from agentworld.runner.folders import MANIFEST
from agentworld.runner.remote import fetch
from agentworld.serving.local import LOCAL, ListenOptions, LocalSimulator, serve_simulator
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore
from agentworld.storage.stores import Stores


def pinned_engine(manifest: SimulatorManifest) -> EngineRecipe:
    """The engine that a simulator was pinned with; a default for an endpoint, which needs none."""
    if isinstance(manifest.engine, Endpoint):
        return EngineRecipe()
    return recipe_of(manifest.engine)


@contextmanager
def serve_locally(
    simulator: Path,
    engine: EngineRecipe,
    store: Path,
    logs: Path,
    listen_options: ListenOptions = LOCAL,
) -> Iterator[LocalSimulator]:
    """Serves the simulator in this folder, at a new address."""
    # absolute, because other processes read it
    pinned = PinnedSimulator.read(simulator.resolve())
    check_installed(pinned.manifest)
    fetch(pinned.model)
    manifest, stores = pinned.folder / MANIFEST, Stores.of(store)
    with serve_simulator(manifest, pinned.model, engine, stores, logs, listen_options) as local:
        yield local


@contextmanager
def serve_client(
    simulator: Path,
    engine: EngineRecipe,
    store: Path,
    logs: Path,
    trajectory: TrajectoryLog | None = None,
) -> Iterator[SimulatorClient]:
    """A client that accepts answers only from the simulator in this folder.

    `trajectory` is the agent's own log of its episodes.
    """
    digest = PinnedSimulator.read(simulator).digest
    with (
        serve_locally(simulator, engine, store, logs) as local,
        _closed_after(
            SimulatorClient(local.url, simulator=digest, trajectory=trajectory)
        ) as client,
    ):
        yield client


@contextmanager
def open_client(
    simulator: Digest,
    at_once: int,
    store: Path,
    logs: Path,
    trajectory: TrajectoryLog | None = None,
) -> Iterator[SimulatorClient]:
    """The same for a simulator of this store; a deployed service is used instead if there is one.

    Otherwise the simulator is served with the pinned engine, with `at_once` concurrent requests.
    """
    client = deployed_service(simulator, trajectory)
    if client:
        with _closed_after(client):
            yield client
        return
    pinned = SimulatorStore(store).find(simulator)
    engine = pinned_engine(pinned.manifest).model_copy(update={"concurrency": at_once})
    with serve_client(pinned.folder, engine, store, logs, trajectory) as client:
        yield client


def deployed_service(
    simulator: Digest | None = None,
    trajectory: TrajectoryLog | None = None,
    attempts: int = 5,
) -> SimulatorClient | None:
    """A client of the service that AGENTWORLD_SERVICE_URL names; null if it is not set."""
    settings = ClientSettings()
    if not settings.service_url:
        return None
    return SimulatorClient(
        settings.service_url,
        simulator=simulator,
        credential=_credential(settings),
        trajectory=trajectory,
        attempts=attempts,
        start_seconds=settings.start_seconds,
    )


def deployed_operator() -> OperatorClient | None:
    """The same with the requests of an operator."""
    settings = ClientSettings()
    if not settings.service_url:
        return None
    return OperatorClient(settings.service_url, credential=_credential(settings))


def _credential(settings: ClientSettings) -> Credential | None:
    return settings.load_credential if settings.credential_file else settings.load_credential()


@contextmanager
def _closed_after(client: SimulatorClient) -> Iterator[SimulatorClient]:
    """Closes the client's connections after the block, in which no event loop runs."""
    try:
        yield client
    finally:
        asyncio.run(client.close())
