"""The servers of the benchmarks, each in a separate process group, with one URL."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import httpx

from agentworld.engine.process import Server, free_port, running
from agentworld.engine.server import ServedEngine
from agentworld.records.run import OpenedRun, RunOpening
from agentworld.records.simulator import SimulatorManifest
from make import records
from make.peers import python_of

OBSERVATION = "kolu tane\n[0] ~"
"""Both sides' observation for every action."""

OPENING = RunOpening(agent="bench", starting_weights=records.digest("none"), purpose="evaluation")
"""The opening of our runs."""

_PEER_PYTHON = python_of("openenv")
_READY_SECONDS = 120.0


class Target(NamedTuple):
    """A server to measure."""

    url: str
    """For a WebSocket with one episode per connection; the core's is a folder for its stores."""
    pid: int | None = None
    """The server's process; null is this one."""
    protocol: str = "openenv"
    """The WebSocket's protocol, a key of `players.HTTP_PROTOCOLS`, `gymnasium` or `core`."""


@contextmanager
def start_peer(
    folder: Path, style: Literal["generated", "async"] = "generated"
) -> Iterator[Target]:
    """An OpenEnv server that does nothing; see openenv_peer.py for `style`."""
    port, program = free_port(), Path(__file__).with_name("openenv_peer.py")
    command = [str(_PEER_PYTHON), str(program), str(port), style, OBSERVATION]
    log = folder / f"openenv-{style}.log"
    with running("the OpenEnv server", command, {}, port, log) as server:
        server.wait_until_ready("/health", _READY_SECONDS)
        yield _target(server, "/ws")


@contextmanager
def start_ours(folder: Path) -> Iterator[Target]:
    """Our service with an engine that responds at once, with an open run; stores in the folder."""
    port, log = free_port(), folder / "simulator.log"
    program = ["-m", "benchmarks.instant_simulator", str(port), str(folder.resolve()), OBSERVATION]
    with running("the simulator service", [sys.executable, *program], {}, port, log) as server:
        server.wait_until_ready("/health", _READY_SECONDS)
        yield _target(server, f"/runs/{_open_run(server.url)}/ws")


@contextmanager
def start_ours_on(engine: ServedEngine, manifest: SimulatorManifest, folder: Path) -> Iterator[str]:
    """The URL of our service with a real engine, as `agentworld.serving.local` starts it."""
    port, log, stores = free_port(), folder / "simulator.log", folder.resolve()
    manifest.write(stores / "manifest.json")
    environment = {
        "AGENTWORLD_MANIFEST": str(stores / "manifest.json"),
        "AGENTWORLD_MODEL_FOLDER": engine.model,
        "AGENTWORLD_ENGINE_URLS": json.dumps([engine.url]),
        "AGENTWORLD_ENGINE_MODEL": engine.model,
        "AGENTWORLD_LEDGER_URL": f"sqlite:///{stores}/ledger.db",
        "AGENTWORLD_OBJECTS_URL": f"file://{stores}/objects",
        "AGENTWORLD_MIRROR_URL": f"file://{stores}/mirror",
        "AGENTWORLD_ACCESS": "local",
        "AGENTWORLD_KEYS": str(stores / "keys"),
        "AGENTWORLD_PORT": str(port),
    }
    command = [sys.executable, "-m", "agentworld.serving.main"]
    with running("the simulator service", command, environment, port, log) as server:
        server.wait_until_ready("/health", _READY_SECONDS)
        yield server.url


def _open_run(url: str) -> str:
    """The id of a new run with the service at this URL."""
    opening = OPENING.model_dump(mode="json")
    answer = httpx.post(f"{url}/runs", json=opening, trust_env=False)
    return OpenedRun.model_validate_json(answer.raise_for_status().content).run.id


def _target(server: Server, path: str) -> Target:
    return Target(server.url.replace("http", "ws", 1) + path, server.process.pid)
