"""A campaign without faults, in which a checker must find nothing."""

import asyncio
import json
import secrets
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

import make.service
from agentworld.client.simulator import SimulatorClient
from agentworld.engine.fake import FakeEngine
from agentworld.ledger import Ledger
from agentworld.records.episode import EpisodeOpening, Source
from agentworld.records.run import RunOpening
from agentworld.serving.app import create_app
from agentworld.signing.keys import SIMULATOR_KEYS, ensure_signer
from agentworld.statements.log_checkpoints import LogCheckpointSigner
from agentworld.storage.objects import ObjectStore, WriteOnce
from campaigns.harness.journal import Journal
from campaigns.service import law
from campaigns.service.checker import check
from campaigns.service.place import Place
from campaigns.service.wire import JournalledTransport
from make import records
from make.service import ACCESS

ACTIONS = ("cat rimo.txt", "cat long.txt", "echo besa")
TASK = records.task(success={"closing": law.CLOSING, "output": "besa"}, turn_limit=5)


class Campaign(NamedTuple):
    """A finished campaign, for tampering."""

    folder: Path

    def kinds(self) -> set[str]:
        """The kinds of the checker's findings."""
        findings = check(self.folder, f"sqlite:///{self.folder / 'ledger.db'}").findings
        return {finding.kind for finding in findings}

    def edit(self, journal: str, change: Callable[[list[dict[str, Any]]], object]) -> None:
        """Changes the lines of a journal."""
        path = self.folder / journal
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        change(lines)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def run(self, statement: str, *values: object) -> None:
        """Changes the ledger."""
        with closing(sqlite3.connect(self.folder / "ledger.db")) as ledger, ledger:
            assert ledger.execute(statement, values).rowcount > 0


@pytest.fixture(scope="session")
def honest_folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("faults") / "honest"
    asyncio.run(_play(folder))
    return folder


@pytest.fixture
def honest(honest_folder, tmp_path) -> Campaign:
    """Two episodes and a fork, played, closed and signed."""
    return Campaign(Path(shutil.copytree(honest_folder, tmp_path / "honest")))


async def _play(folder: Path) -> None:
    place = Place.create(folder, f"sqlite:///{folder / 'ledger.db'}", "")
    client_journal, wire_journal = (
        Journal(folder / "responses.jsonl"),
        Journal(folder / "wire.jsonl"),
    )
    manifest, ledger = place.manifest("first"), Ledger(place.ledger_url, _objects(folder))
    signer = partial(ensure_signer, folder / "keys" / SIMULATOR_KEYS)
    log_signer = LogCheckpointSigner(
        ledger, manifest.digest, signer, WriteOnce(str(folder / "mirror"))
    )
    parts = make.service.of_one(manifest, _engine(place), ledger)
    app = create_app(*parts, log_signer, ACCESS)
    transport = JournalledTransport("trainer", wire_journal, httpx.ASGITransport(app))
    client = SimulatorClient("http://simulator", transport=transport)
    run = (await client.open_run(RunOpening(agent="a", starting_weights=records.digest("s")))).id
    first_episode = await _episode(client, client_journal, EpisodeOpening(run=run, task=TASK))
    await _episode(
        client,
        client_journal,
        EpisodeOpening(run=run, fork=Source(episode=first_episode, step=2)),
        2,
    )
    await app.state.app_state.runs.seal()
    other_opening = EpisodeOpening(run=run, initial_state="tane.txt: kolu", turn_limit=2)
    await _episode(client, client_journal, other_opening)
    await client.close_run(records.digest("final"))
    await parts.episode_store.close()
    await app.state.app_state.runs.seal()
    ledger.close()


async def _episode(
    client: SimulatorClient, journal: Journal, opening: EpisodeOpening, num_copied: int = 0
) -> str:
    episode = (await client.begin(opening)).episode
    for number, action in enumerate(ACTIONS[num_copied : opening.limit], num_copied + 1):
        result = (await client.step(episode, action))._asdict()
        journal.write(client="trainer", episode=episode, step=number, action=action, result=result)
    return episode


def _engine(place: Place) -> FakeEngine:
    """An engine that responds like a campaign's engines, and records each response."""
    journal, secret = Journal(place.folder / "said.jsonl"), place.secret("first-0")

    def answer(messages: list[dict[str, str]]) -> str:
        nonce = secrets.token_hex(8)
        observation = law.observation(secret, "first", messages, nonce)
        record = {"engine": "first-0", "version": "first", "nonce": nonce}
        journal.write(**record, observation=observation, fault=None)
        return observation

    return FakeEngine(answer)


def _objects(folder: Path) -> ObjectStore:
    return ObjectStore(str(folder / "objects"))
