"""A simulator on one machine: an engine and the service as two processes, ended together."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import agentworld
from agentworld.access.directory import Directory
from agentworld.engine.process import LOOPBACK, check_free, free_port, running
from agentworld.engine.server import serve
from agentworld.recipes.serve import EngineRecipe
from agentworld.records.simulator import Endpoint, SimulatorManifest
from agentworld.simulate.manifest import check_engine, check_files
from agentworld.simulate.stores import Stores

_READY_SECONDS = 300.0


class Listening(NamedTuple):
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
    def named(self) -> str:
        """The access, whatever folder it is read in."""
        return self.access if self.access == "local" else str(Path(self.access).resolve())


LOCAL = Listening()
"""For this machine alone."""


@contextmanager
def serve_simulator(
    manifest_path: Path,
    model_folder: Path,
    engine: EngineRecipe,
    stores: Stores,
    log_folder: Path,
    at: Listening = LOCAL,
) -> Iterator[str]:
    """The URL of a pinned simulator that answers while the block runs.

    Raises InputError naming what is wrong or not as it was pinned, before anything is started, and
    EngineError with the end of a log when one of the two processes dies. A world from an
    endpoint has no engine here; `engine` then only bounds what is asked at once.
    """
    manifest = SimulatorManifest.read(manifest_path)
    at.check()
    with _engine(manifest, model_folder, engine, log_folder / "engine.log") as addresses:
        port, command = at.port or free_port(), [sys.executable, "-m", "agentworld.simulate.main"]
        environment = {
            **addresses,
            "AGENTWORLD_ENGINE_CONCURRENCY": str(engine.concurrency),
            "AGENTWORLD_ACCESS": at.named,
            "AGENTWORLD_HOST": LOOPBACK,
            "AGENTWORLD_PORT": str(port),
            # The service runs the very code that starts it, installed or not.
            "PYTHONPATH": str(Path(agentworld.__file__).parents[1]),
            "AGENTWORLD_MANIFEST": str(manifest_path.resolve()),
            "AGENTWORLD_LEDGER_URL": stores.ledger_url,
            "AGENTWORLD_OBJECTS_URL": stores.objects_url,
            "AGENTWORLD_CHECKPOINTS_URL": stores.checkpoints_url,
            "AGENTWORLD_KEYS": str(stores.keys),
        }
        log = log_folder / "simulator.log"
        with running("the simulator service", command, environment, port, log) as service:
            service.wait_until_ready("/health", _READY_SECONDS)
            yield service.url


@contextmanager
def _engine(
    manifest: SimulatorManifest, model_folder: Path, recipe: EngineRecipe, log: Path
) -> Iterator[dict[str, str]]:
    """Where the service finds the engine; an endpoint's world names it itself."""
    if isinstance(manifest.engine, Endpoint):
        yield {}
        return
    check_files(manifest, model_folder)
    check_engine(manifest, recipe)
    with serve(
        model_folder,
        recipe,
        sampling=manifest.sampling,
        context_tokens=manifest.context_tokens,
        log=log,
    ) as served:
        yield {
            "AGENTWORLD_MODEL_FOLDER": str(model_folder.resolve()),
            "AGENTWORLD_ENGINE_URLS": json.dumps([served.url]),
            "AGENTWORLD_ENGINE_MODEL": served.model,
        }
