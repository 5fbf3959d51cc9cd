"""The servers that are compared, each in a process group of its own, reached by one URL."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import httpx

import make
from agentworld.engine.process import Server, free_port, running
from agentworld.engine.server import ServedEngine
from agentworld.records.run import OpenedRun, RunOpening
from agentworld.records.simulator import SimulatorManifest
from benchmarks.door import Door
from benchmarks.wires import HTTP_WIRES

OBSERVATION = "kolu tane\n[0] ~"
"""What both sides show for every action."""

OPENING = RunOpening(agent="bench", starting_weights=make.digest("none"), purpose="evaluation")
"""Of our runs."""

_PEER_PYTHON = Path(__file__).parents[2] / ".venv-peers/bin/python"
_READY_SECONDS = 120.0


@contextmanager
def start_peer(folder: Path, style: Literal["generated", "async"] = "generated") -> Iterator[Door]:
    """An OpenEnv server that does nothing; `style` as openenv_peer.py tells."""
    port, program = free_port(), Path(__file__).with_name("openenv_peer.py")
    command = [str(_PEER_PYTHON), str(program), str(port), style, OBSERVATION]
    log = folder / f"openenv-{style}.log"
    with running("the OpenEnv server", command, {}, port, log) as server:
        server.wait_until_ready("/health", _READY_SECONDS)
        yield _door(server, "/ws")


@contextmanager
def start_ours(folder: Path) -> Iterator[Door]:
    """Our service over an engine that answers at once, with an open run; stores in the folder."""
    port, log = free_port(), folder / "simulator.log"
    program = ["-m", "benchmarks.instant_simulator", str(port), str(folder.resolve()), OBSERVATION]
    with running("the simulator service", [sys.executable, *program], {}, port, log) as server:
        server.wait_until_ready("/health", _READY_SECONDS)
        yield _door(server, f"/runs/{_open_run(server.url)}/ws")


@contextmanager
def start_wires(folder: Path) -> Iterator[dict[str, Door]]:
    """The same service, reached by each wire, by its name."""
    with start_ours(folder) as door:
        run = door.url.replace("ws", "http", 1).removesuffix("/ws")
        yield {"openenv": door} | {wire: Door(run, door.pid, wire) for wire in HTTP_WIRES}


@contextmanager
def start_ours_on(engine: ServedEngine, manifest: SimulatorManifest, folder: Path) -> Iterator[str]:
    """The URL of our service over a real engine, as `agentworld.simulate.local` starts it."""
    port, log, stores = free_port(), folder / "simulator.log", folder.resolve()
    manifest.write(stores / "manifest.json")
    environment = {
        "AGENTWORLD_MANIFEST": str(stores / "manifest.json"),
        "AGENTWORLD_MODEL_FOLDER": engine.model,
        "AGENTWORLD_ENGINE_URLS": json.dumps([engine.url]),
        "AGENTWORLD_ENGINE_MODEL": engine.model,
        "AGENTWORLD_LEDGER_URL": f"sqlite:///{stores}/ledger.db",
        "AGENTWORLD_OBJECTS_URL": f"file://{stores}/objects",
        "AGENTWORLD_CHECKPOINTS_URL": f"file://{stores}/checkpoints",
        "AGENTWORLD_ACCESS": "local",
        "AGENTWORLD_KEYS": str(stores / "keys"),
        "AGENTWORLD_PORT": str(port),
    }
    command = [sys.executable, "-m", "agentworld.simulate.main"]
    with running("the simulator service", command, environment, port, log) as server:
        server.wait_until_ready("/health", _READY_SECONDS)
        yield server.url


def _open_run(url: str) -> str:
    """The id of a new run with the service at this URL."""
    opening = OPENING.model_dump(mode="json")
    answer = httpx.post(f"{url}/runs", json=opening, trust_env=False)
    return OpenedRun.model_validate_json(answer.raise_for_status().content).run.id


def _door(server: Server, path: str) -> Door:
    return Door(server.url.replace("http", "ws", 1) + path, server.process.pid)
