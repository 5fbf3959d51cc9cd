"""A simulator on one machine: an engine and the service as two processes, ended together."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import agentworld
from agentworld.engine.process import LOOPBACK, free_port, running
from agentworld.engine.server import ServedEngine, serve
from agentworld.recipes.serve import EngineRecipe
from agentworld.records.simulator import SimulatorManifest
from agentworld.simulate.manifest import check_engine, check_files

_READY_SECONDS = 300.0


@contextmanager
def serve_simulator(
    manifest_path: Path,
    model_folder: Path,
    engine: EngineRecipe,
    ledger_url: str,
    log_folder: Path,
) -> Iterator[str]:
    """The URL of a pinned simulator that answers while the block runs.

    Raises InputError naming what is not as it was pinned, before anything is started, and
    EngineError with the end of a log when one of the two processes dies.
    """
    manifest = SimulatorManifest.read(manifest_path)
    check_files(manifest, model_folder)
    check_engine(manifest, engine)
    with serve(
        model_folder,
        engine,
        sampling=manifest.sampling,
        context_tokens=manifest.context_tokens,
        log=log_folder / "engine.log",
    ) as served:
        port, command = free_port(), [sys.executable, "-m", "agentworld.simulate.main"]
        environment = {
            **_addresses(served, port),
            "AGENTWORLD_MANIFEST": str(manifest_path.resolve()),
            "AGENTWORLD_MODEL_FOLDER": str(model_folder.resolve()),
            "AGENTWORLD_LEDGER_URL": ledger_url,
        }
        log = log_folder / "simulator.log"
        with running("the simulator service", command, environment, port, log) as service:
            service.wait_until_ready("/health", _READY_SECONDS)
            yield service.url


def _addresses(served: ServedEngine, port: int) -> dict[str, str]:
    return {
        "AGENTWORLD_ENGINE_URL": served.url,
        "AGENTWORLD_ENGINE_MODEL": served.model,
        "AGENTWORLD_ENGINE_CONCURRENCY": str(served.concurrency),
        "AGENTWORLD_HOST": LOOPBACK,
        "AGENTWORLD_PORT": str(port),
        # The service runs the very code that starts it, installed or not.
        "PYTHONPATH": str(Path(agentworld.__file__).parents[1]),
    }
