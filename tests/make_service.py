"""A store with a simulator service over it, whose engine is no model but a function."""

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

import make
from agentworld.client.simulator import SimulatorClient
from agentworld.engine.fake import FakeEngine
from agentworld.engine.process import LOOPBACK, free_port
from agentworld.evidence.keys import (
    SIMULATOR_KEYS,
    STEP_KEYS,
    ensure_signer,
    load_signer,
    load_trusted,
)
from agentworld.records.run import RunOpening
from agentworld.simulate.app import create_app
from agentworld.simulate.sealing import Sealer
from agentworld.simulate.stores import Stores
from agentworld.steps.ledger import open_ledger
from agentworld.storage.objects import WriteOnce

OPENING = RunOpening(agent="terminal-agent", starting_weights=make.digest("starting"))
SIMULATOR = make.manifest().digest


def shell(messages):
    """Knows `echo`; shows nothing for everything else."""
    action = messages[-1]["content"]
    return f"{action.removeprefix('echo ')}\n[0] ~" if action.startswith("echo ") else "[0] ~"


class Service(NamedTuple):
    """In this process, without a socket."""

    store: Path
    engine: FakeEngine
    app: FastAPI

    @property
    def ledger(self):
        return open_ledger(self.store)

    def client(self, **settings) -> SimulatorClient:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        return SimulatorClient("http://simulator", transport=transport, **settings)

    def seal(self) -> None:
        sealer(self.store).seal_all()


def sealer(store: Path) -> Sealer:
    """What signs the logs of a store's simulator."""
    stores = Stores.of(store)
    own, steps = stores.keys / SIMULATOR_KEYS, stores.keys / STEP_KEYS
    for folder in (own, steps):
        ensure_signer(folder)
    return Sealer(
        open_ledger(store),
        SIMULATOR,
        partial(load_signer, own),
        WriteOnce(stores.checkpoints_url),
        trusted=partial(load_trusted, own),
        step_keys=partial(load_trusted, steps),
    )


def service(store: Path, answer=shell, **intervals: float) -> Service:
    engine = FakeEngine(answer)
    app = create_app(make.manifest(), engine, open_ledger(store), sealer(store), **intervals)
    return Service(store, engine, app)


@contextmanager
def listening(app: FastAPI) -> Iterator[str]:
    """The address of a service that listens while the block runs."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, LOOPBACK, port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield f"http://{LOOPBACK}:{port}"
    finally:
        server.should_exit = True
        thread.join()


async def play(client: SimulatorClient, *actions: str, run: str = "", **opening) -> str:
    """An episode of these actions in a run, a new one where none is named; returns its id."""
    from agentworld.records.episode import EpisodeOpening

    into = run or (await client.open_run(OPENING)).id
    begun = await client.begin(EpisodeOpening(run=into, **opening))
    for action in actions:
        await client.step(begun.episode, action)
    return begun.episode
