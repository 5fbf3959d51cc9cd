"""A simulator on one machine: an engine and the service as two processes, ended together."""

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
    """Who is let in, and where."""

    access: str = "local"
    """The file that says who may come; `local` asks nobody."""
    port: int | None = None
    """Null takes a free one."""

    def check(self) -> None:
        """Raises InputError for a file or a port that would stop the service when it starts."""
        if self.access != "local":
            Directory.load(Path(self.access))
        if self.port is not None:
            check_free(self.port)

    @property
    def resolved_access(self) -> str:
        """The access, whatever folder it is read in."""
        return self.access if self.access == "local" else str(Path(self.access).resolve())


LOCAL = ListenOptions()
"""For this machine alone."""


class LocalSimulator(NamedTuple):
    """A simulator that answers here."""

    url: str
    service: Server
    engine: SupervisedEngine | None
    """Null for the world of an endpoint."""

    def wait(self) -> NoReturn:
        """Until one of its processes ends for good; raises EngineError with the reason."""
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
    """A pinned simulator that answers while the block runs.

    An engine that ends is started again. Raises InputError naming what is wrong or not as it was
    pinned, before anything is started, and EngineError with the end of a log when the service
    dies, or the engine does not start. A world from an endpoint has no engine here; `engine` then
    only bounds what is asked at once.
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
            # The service runs the very code that starts it, installed or not.
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
    """Where the service finds the engine; an endpoint's world names it itself."""
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
        check_files(manifest, model_folder)  # each time: nobody serves what was changed meanwhile
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
