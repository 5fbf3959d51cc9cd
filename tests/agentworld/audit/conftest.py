"""A ledger on disk for tampering."""

import sqlite3
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

import make.ledger
from agentworld.audit.checks.episode import EpisodeVerification, verify_episode
from agentworld.audit.checks.run import RunVerification, verify_run
from agentworld.audit.read.evidence import Evidence
from agentworld.ledger import Ledger
from agentworld.ledger.writes import EpisodeClosed, EpisodeOpened, NewStep
from agentworld.records.episode import Episode, EpisodeOpening
from agentworld.records.run import RunOpening
from agentworld.signing.keys import ensure_signer, load_trusted
from agentworld.statements.log_checkpoints import LogCheckpointSigner
from agentworld.storage.objects import WriteOnce
from make import records

SIMULATOR = records.digest("simulator")


class Scene(NamedTuple):
    folder: Path
    run: str

    @property
    def ledger(self):
        return Ledger(f"sqlite:///{self.folder}/ledger.db")

    @property
    def mirror(self):
        return WriteOnce(str(self.folder / "mirror"))

    @property
    def copies(self) -> list[Path]:
        return sorted(path for path in (self.folder / "mirror").rglob("*") if path.is_file())

    @property
    def evidence(self) -> Evidence:
        steps = self.folder / "steps"
        trusted = load_trusted(self.folder / "keys")
        return Evidence(trusted, self.mirror, load_trusted(steps) if steps.exists() else None)

    def seal(self):
        signer = partial(ensure_signer, self.folder / "keys")
        return LogCheckpointSigner(self.ledger, SIMULATOR, signer, self.mirror).seal_all()

    def play(self, name, *observations, close=True):
        """Writes an episode with these steps, one by one."""
        ledger = self.ledger
        base = Episode.new(name, SIMULATOR, EpisodeOpening(run=self.run))
        ledger.write([EpisodeOpened(base)])
        episode = records.episode(*observations, base=base)
        for step in episode.steps:
            ledger.write([NewStep(self.run, step)])
        if close:
            ledger.write(
                [EpisodeClosed(self.run, name, len(episode.steps), episode.head, "closed")]
            )

    def change(self, *statements):
        """Changes the database as an attacker would."""
        with sqlite3.connect(self.folder / "ledger.db") as database:
            for statement in statements:
                assert database.execute(statement).rowcount != 0

    def verify(self, ledger=None) -> RunVerification:
        return verify_run(self.run, ledger or self.ledger, self.evidence)

    def verify_episode(self, name) -> EpisodeVerification:
        return verify_episode(name, self.ledger, self.evidence)


@pytest.fixture(scope="session")
def first_scene(tmp_path_factory) -> Scene:
    """The original that the tests copy and tamper with."""
    folder = tmp_path_factory.mktemp("scene")
    opening = RunOpening(agent="a", starting_weights=records.digest("starting"))
    url = make.ledger.laid(f"sqlite:///{folder}/ledger.db")
    scene = Scene(folder, Ledger(url).open_run(opening, SIMULATOR).id)
    scene.play("first", "a", "b")
    scene.play("second", "c", close=False)
    scene.seal()
    return scene


@pytest.fixture
def scene(first_scene, tmp_path) -> Scene:
    """A signed run with an episode that is closed, `first`, and one that is open, `second`.

    Their keys are 1 and 2.
    """
    make.ledger.copy_store(first_scene.folder, tmp_path)
    return first_scene._replace(folder=tmp_path)
