"""Writes into a ledger, without a service."""

import contextlib
import shutil
import sqlite3
import uuid
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from agentworld.ledger import Ledger
from agentworld.ledger.writes import EpisodeClosed, EpisodeOpened, NewStep
from agentworld.records.base import Digest
from agentworld.records.episode import Episode, EpisodeOpening
from agentworld.records.run import RunClosing, RunOpening
from make import records

SIMULATOR = records.digest("simulator")
OPENING = RunOpening(agent="shell-agent", starting_weights=records.digest("starting"))


_SQLITE = "sqlite:///"


def laid(url: str) -> str:
    """The URL of a ledger; if its file is missing, copies an empty ledger there.

    Copying takes a tenth of the time of the migrations, which the ledger's own tests run.
    """
    file = Path(url.removeprefix(_SQLITE))
    if url.startswith(_SQLITE) and not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_empty())
    return url


def with_aliases(folder: Path, **simulators: Digest) -> Ledger:
    """A new ledger in a folder, whose aliases have these targets."""
    ledger = Ledger(laid(f"{_SQLITE}{folder / 'ledger.db'}"))
    for alias, simulator in simulators.items():
        ledger.aliases.set(alias, simulator, "ada")
    return ledger


def copy_store(store: Path, target: Path) -> None:
    """Copies a folder with an idle ledger into an existing folder."""
    with contextlib.closing(sqlite3.connect(store / "ledger.db")) as ledger:
        ledger.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    ignore = shutil.ignore_patterns("*-wal", "*-shm")
    shutil.copytree(store, target, ignore=ignore, dirs_exist_ok=True)


@cache
def _empty() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "ledger.db"
        Ledger(f"{_SQLITE}{file}").close()
        return file.read_bytes()


def closing(name="final"):
    return RunClosing(final_weights=records.digest(name))


def open_episode(ledger, run=None, simulator=SIMULATOR, **opening):
    run = run or ledger.open_run(OPENING, SIMULATOR).id
    episode = Episode.new(uuid.uuid4().hex, simulator, EpisodeOpening(run=run, **opening))
    ledger.write([EpisodeOpened(episode)])
    return episode


def steps(episode, *observations):
    """Chained steps; the first one follows from the episode's start."""
    return records.episode(*observations, base=episode).steps


def taken(episode, *observations):
    return [NewStep(episode.run, step) for step in steps(episode, *observations)]


def end(episode, num_steps=0, reason="closed"):
    return EpisodeClosed(episode.run, episode.id, num_steps, episode.head, reason)
