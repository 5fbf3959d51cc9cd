"""Fixtures: a service with a real ledger and a scripted engine, and its clients."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

import make.ledger
import make.service
from agentworld.client.simulator import SimulatorClient
from agentworld.engine.fake import FakeEngine
from agentworld.http.protection import Limits
from agentworld.http.server import IGNORED_MESSAGES
from agentworld.ledger import Ledger
from agentworld.records.run import RunOpening
from agentworld.serving.app import create_app
from agentworld.signing.keys import SIMULATOR_KEYS, STEP_KEYS, ensure_signer, load_trusted
from agentworld.statements.log_checkpoints import LogCheckpointSigner
from agentworld.storage.objects import WriteOnce
from make import records
from make.service import ACCESS

OPENING = RunOpening(agent="shell-agent", starting_weights=records.digest("starting"))


def shell(messages):
    """Supports `echo`; other commands print nothing."""
    action = messages[-1]["content"]
    return f"{action.removeprefix('echo ')}\n[0] ~" if action.startswith("echo ") else "[0] ~"


class Served(NamedTuple):
    engine: FakeEngine
    ledger: Ledger
    transport: httpx.AsyncBaseTransport

    def client(self, **settings) -> SimulatorClient:
        return SimulatorClient("http://simulator", transport=self.transport, **settings)

    def http(self, method, path, body=None, **headers) -> httpx.Response:
        """One HTTP request of an external client."""
        content = b"" if body is None else json.dumps(body).encode()
        return self.send(method, path, content, **headers)

    def send(self, method, path, content, **raw_headers) -> httpx.Response:
        """One request with these bytes."""

        async def ask():
            async with httpx.AsyncClient(
                transport=self.transport, base_url="http://simulator"
            ) as client:
                headers = {name.replace("_", "-"): value for name, value in raw_headers.items()}
                headers |= {"content-type": "application/json"} if content else {}
                return await client.request(method, path, content=content, headers=headers)

        return asyncio.run(ask())

    def run(self) -> str:
        body = OPENING.model_dump(mode="json")
        return self.http("POST", "/runs", body).json()["run"]["id"]

    def reset(self, run=None, **opening) -> str:
        body = {"run": run or self.run(), **opening}
        return self.http("POST", "/episodes", body).json()["episode"]

    def step(self, episode, action, step) -> httpx.Response:
        return self.http("POST", "/steps", {"episode": episode, "action": action, "step": step})


@pytest.fixture
def serve(tmp_path) -> Iterator[Callable[..., Served]]:
    """Serves a function's responses and a manifest of the test's own; all services share one
    ledger.
    """
    with serving(tmp_path) as start:
        yield start


@contextmanager
def serving(folder: Path) -> Iterator[Callable[..., Served]]:
    """Serves as the fixture `serve` does, in this folder."""

    def start(
        answer=shell, ledger=Ledger, states=dict, access=ACCESS, accelerators=tuple, **manifest
    ):
        engine, own_ledger = FakeEngine(answer), ledger(url)
        ledgers.append(own_ledger)
        pinned_manifest = records.manifest(**manifest)
        ensure_signer(folder / "keys" / STEP_KEYS)
        log_signer = LogCheckpointSigner(
            own_ledger,
            pinned_manifest.digest,
            partial(ensure_signer, folder / "keys" / SIMULATOR_KEYS),
            WriteOnce(str(folder / "mirror")),
            trusted=partial(load_trusted, folder / "keys" / SIMULATOR_KEYS),
            step_keys=partial(load_trusted, folder / "keys" / STEP_KEYS),
        )
        parts = make.service.of_one(pinned_manifest, engine, own_ledger, states, accelerators)
        app = create_app(*parts, log_signer, access)
        return Served(engine, own_ledger, httpx.ASGITransport(app, raise_app_exceptions=False))

    url = make.ledger.laid(f"sqlite:///{folder / 'ledger.db'}")
    ledgers: list[Ledger] = []
    yield start
    for ledger in ledgers:
        ledger.close()


@pytest.fixture
def listen(tmp_path) -> Iterator[Callable[..., str]]:
    """Listens on the loopback, with limits of the test's own; returns the address."""
    with ExitStack() as stack:

        def start(**limits):
            app = make.service.service(tmp_path).app
            bounds = Limits(**{"check_seconds": 0.05} | limits)
            return stack.enter_context(make.service.listening(app, bounds))

        yield start


@pytest.fixture
def log_lines(caplog) -> Iterator[Callable[[], list[str]]]:
    """The log of the service's process so far; a stack trace belongs to its line."""

    def collect_record(record: logging.LogRecord) -> bool:
        caplog.handler.emit(record)
        return True

    def lines() -> list[str]:
        records = [record for record in caplog.records if record.msg not in IGNORED_MESSAGES]
        return list(map(caplog.handler.format, records))

    logger = logging.getLogger("uvicorn.error")
    logger.addFilter(collect_record)  # uvicorn removes all handlers from its logger at its start
    yield lines
    logger.removeFilter(collect_record)
