"""A store with a simulator service whose engine is a function."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import httpx
import uvicorn
from fastapi import FastAPI

import make.ledger
from agentworld.access import Access
from agentworld.access.checked import LocalAccess
from agentworld.access.run_token import RunTokens
from agentworld.client.simulator import SimulatorClient
from agentworld.engine.fake import FakeEngine
from agentworld.engine.process import LOOPBACK, free_port
from agentworld.http.protection import Limits
from agentworld.http.server import server as listening_server
from agentworld.ledger import Ledger
from agentworld.operations.ledger import open_ledger
from agentworld.records.base import Digest
from agentworld.records.episode import new_name
from agentworld.records.run import RunOpening
from agentworld.serving.app import create_app
from agentworld.serving.episodes.store import EpisodeStore
from agentworld.serving.setup import guard_of
from agentworld.serving.simulators.base import ConnectedSimulator
from agentworld.serving.simulators.connections import Simulators
from agentworld.serving.simulators.single import OneSimulator
from agentworld.signing.keys import (
    SIMULATOR_KEYS,
    STEP_KEYS,
    ensure_signer,
    load_signer,
    load_trusted,
)
from agentworld.statements.log_checkpoints import LogCheckpointSigner
from agentworld.storage.objects import WriteOnce
from agentworld.storage.stores import Stores
from make import records

ACCESS = LocalAccess(RunTokens(b"a secret of the tests"))
"""Admits all callers."""

_END_SECONDS = 60

OPENING = RunOpening(agent="shell-agent", starting_weights=records.digest("starting"))
SIMULATOR = records.manifest().digest


def shell(messages):
    """Supports `echo`; other commands print nothing."""
    action = messages[-1]["content"]
    return f"{action.removeprefix('echo ')}\n[0] ~" if action.startswith("echo ") else "[0] ~"


class Service(NamedTuple):
    """A service in this process, without a socket."""

    store: Path
    engine: FakeEngine
    app: FastAPI
    simulator: Digest

    @property
    def ledger(self):
        return ledger(self.store)

    def client(self, **settings) -> SimulatorClient:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        return SimulatorClient("http://simulator", transport=transport, **settings)

    def seal(self) -> None:
        log_signer(self.store, self.simulator).seal_all()


def ledger(store: Path) -> Ledger:
    """A store's ledger, which is created if it is missing."""
    make.ledger.laid(Stores.of(store).ledger_url)
    return open_ledger(store)


def log_signer(
    store: Path, simulator: Digest = SIMULATOR, own_ledger: Ledger | None = None
) -> LogCheckpointSigner:
    """The signer of the logs of a store's simulator, in an open ledger if one is given."""
    stores = Stores.of(store)
    own_keys, step_keys = stores.keys / SIMULATOR_KEYS, stores.keys / STEP_KEYS
    for folder in (own_keys, step_keys):
        ensure_signer(folder)
    return LogCheckpointSigner(
        own_ledger or ledger(store),
        simulator,
        partial(load_signer, own_keys),
        WriteOnce(stores.mirror_url),
        trusted=partial(load_trusted, own_keys),
        step_keys=partial(load_trusted, step_keys),
    )


def service(
    store: Path, answer=shell, pinned=None, access: Access = ACCESS, **intervals: float
) -> Service:
    manifest, engine, store_ledger = pinned or records.manifest(), FakeEngine(answer), ledger(store)
    parts = of_one(manifest, engine, store_ledger)
    app = create_app(*parts, log_signer(store, manifest.digest, store_ledger), access, **intervals)
    return Service(store, engine, app, manifest.digest)


class Alone(NamedTuple):
    """The only simulator of its process."""

    simulators: Simulators
    episode_store: EpisodeStore


def of_one(manifest, engine, ledger: Ledger, states=dict, accelerators=tuple) -> Alone:
    """The service of a single machine."""
    episode_store = EpisodeStore(ledger, simulator=manifest.digest)
    catalog = OneSimulator(
        ConnectedSimulator(manifest, engine, states, accelerators), ledger.aliases
    )
    return Alone(Simulators(episode_store, catalog), episode_store)


class PromptServer(uvicorn.Server):
    """Stops at once; uvicorn polls for its stop ten times a second, and then waits 0.1 seconds."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def wake(self) -> None:
        """Makes the started server check for its stop, from another thread."""
        assert self._loop
        self._loop.call_soon_threadsafe(self._woken.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            await self._woken.wait()
            self._woken.clear()

    async def shutdown(self, *_sockets: object, **_same: object) -> None:
        for listener in self.servers:
            listener.close()
        closed, deadline = set(), time.monotonic() + _END_SECONDS
        while self.server_state.connections or self.server_state.tasks:
            # Also those accepted while the listener closed: their clients may keep them open.
            for connection in self.server_state.connections - closed:
                connection.shutdown()
                closed.add(connection)
            assert time.monotonic() < deadline, "a request has no end"
            await asyncio.sleep(0.001)
        await self.lifespan.shutdown()


@contextmanager
def listening(
    app: FastAPI,
    limits: Limits = Limits(),  # noqa: B008
    kind: type[uvicorn.Server] = PromptServer,
) -> Iterator[str]:
    """The address of a service that listens while the block runs."""
    port = free_port()
    guard = guard_of(app.state.app_state, limits)
    with running(kind(listening_server(app, guard, LOOPBACK, port).config)):
        yield f"http://{LOOPBACK}:{port}"


@contextmanager
def running(server: uvicorn.Server) -> Iterator[None]:
    """Serves in a separate thread while the block runs."""
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.001)
    try:
        yield
    finally:
        server.should_exit = True
        if isinstance(server, PromptServer):
            server.wake()
        thread.join(2 * _END_SECONDS)
        assert not thread.is_alive(), "the service does not end"


def run(url: str) -> str:
    """The id of a new run with the service at this address."""
    answer = httpx.post(f"{url}/runs", json=OPENING.model_dump(mode="json"), trust_env=False)
    run_id: str = answer.json()["run"]["id"]
    return run_id


def name(url: str, alias: str, simulator: Digest, **move: object) -> httpx.Response:
    """Points an alias at a simulator, as an operator requests it."""
    return httpx.put(
        f"{url}/aliases/{alias}",
        json={"kind": "simulator", "simulator": simulator, "by": "ada", **move},
        headers={"Idempotency-Key": new_name()},
        trust_env=False,
    )


async def play(client: SimulatorClient, *actions: str, run: str = "", **opening) -> str:
    """An episode of these actions in a run, a new one by default; returns its id."""
    from agentworld.records.episode import EpisodeOpening

    run_id = run or (await client.open_run(OPENING)).id
    episode = await client.begin(EpisodeOpening(run=run_id, **opening))
    for action in actions:
        await client.step(episode.episode, action)
    return episode.episode
