"""A simulator on one machine: an engine and the service as two processes that end together."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import NamedTuple, NoReturn

import agentworld
from agentworld.access.directory import Directory
from agentworld.engine.accelerators import of_this_machine
from agentworld.engine.process import LOOPBACK, Server, check_free, free_port, running
from agentworld.engine.server import ServedEngine, serve
from agentworld.engine.supervised import SupervisedEngine, supervise
from agentworld.pinning.manifest import check_engine, check_files
from agentworld.recipes.serve import EngineRecipe
from agentworld.records.simulator import Endpoint, SimulatorManifest
from agentworld.storage.stores import Stores

_READY_SECONDS = 300.0
_SECONDS_BETWEEN_LOOKS = 0.5


class ListenOptions(NamedTuple):
    """Access and address of the service."""

    access: str = "local"
    """The access file; `local` disables authentication."""
    port: int | None = None
    """Null uses a free port."""

    def check(self) -> None:
        """Raises InputError for a file or a port that would prevent the start."""
        if self.access != "local":
            Directory.load(Path(self.access))
        if self.port is not None:
            check_free(self.port)

    @property
    def resolved_access(self) -> str:
        """The access file as an absolute path."""
        return self.access if self.access == "local" else str(Path(self.access).resolve())


LOCAL = ListenOptions()
"""Only this machine can connect."""


class LocalSimulator(NamedTuple):
    """A running simulator on this machine."""

    url: str
    service: Server
    engine: SupervisedEngine | None
    """Null for a third-party endpoint."""

    def wait(self) -> NoReturn:
        """Waits until one of its processes ends for good; raises EngineError with the reason."""
        while True:
            self.service.check()
            if self.engine:
                self.engine.check()
            time.sleep(_SECONDS_BETWEEN_LOOKS)


@contextmanager
def serve_simulator(
    manifest_path: Path,
    model_folder: Path,
    engine: EngineRecipe,
    stores: Stores,
    log_folder: Path,
    listen_options: ListenOptions = LOCAL,
) -> Iterator[LocalSimulator]:
    """Serves a pinned simulator while the block runs, and restarts an engine that ends.

    Raises InputError for an invalid or changed pin, before anything is started, and EngineError
    with the end of a log if the service dies, or the engine does not start. An endpoint has no
    engine here; `engine` then only limits concurrent requests.
    """
    manifest = SimulatorManifest.read(manifest_path)
    listen_options.check()
    with _engine(manifest, model_folder, engine, log_folder / "engine.log") as local_engine:
        port, command = (
            listen_options.port or free_port(),
            [sys.executable, "-m", "agentworld.serving.main"],
        )
        environment = {
            **(_addresses(local_engine, model_folder) if local_engine else {}),
            "AGENTWORLD_ENGINE_CONCURRENCY": str(engine.concurrency),
            "AGENTWORLD_ACCESS": listen_options.resolved_access,
            "AGENTWORLD_HOST": LOOPBACK,
            "AGENTWORLD_PORT": str(port),
            # The service runs the same code as this process, installed or not.
            "PYTHONPATH": str(Path(agentworld.__file__).parents[1]),
            "AGENTWORLD_MANIFEST": str(manifest_path.resolve()),
            "AGENTWORLD_LEDGER_URL": stores.ledger_url,
            "AGENTWORLD_OBJECTS_URL": stores.objects_url,
            "AGENTWORLD_MIRROR_URL": stores.mirror_url,
            "AGENTWORLD_KEYS": str(stores.keys),
        }
        log = log_folder / "simulator.log"
        with running("the simulator service", command, environment, port, log) as service:
            service.wait_until_ready("/health", _READY_SECONDS)
            yield LocalSimulator(service.url, service, local_engine)


def _addresses(engine: SupervisedEngine, model_folder: Path) -> dict[str, str]:
    """Variables with the engine's address for the service; an endpoint's is in its manifest."""
    return {
        "AGENTWORLD_MODEL_FOLDER": str(model_folder.resolve()),
        "AGENTWORLD_ENGINE_URLS": json.dumps([engine.url]),
        "AGENTWORLD_ENGINE_MODEL": engine.model,
        "AGENTWORLD_ACCELERATORS": json.dumps([of_this_machine()]),
    }


@contextmanager
def _engine(
    manifest: SimulatorManifest, model_folder: Path, recipe: EngineRecipe, log: Path
) -> Iterator[SupervisedEngine | None]:
    if isinstance(manifest.engine, Endpoint):
        yield None
        return
    port = free_port()

    @contextmanager
    def start(stopping: Event) -> Iterator[ServedEngine]:
        check_files(manifest, model_folder)  # at each restart, so that changed files are not served
        check_engine(manifest, recipe)
        with serve(
            model_folder,
            recipe,
            sampling=manifest.sampling,
            context_tokens=manifest.context_tokens,
            log=log,
            port=port,
            stopping=stopping,
        ) as served:
            yield served

    with supervise(start) as engine:
        yield engine
