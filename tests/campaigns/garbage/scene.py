"""A store for garbage, with earlier tampering in other parts.

Each tampering is a problem that must still be reported after the garbling of other parts.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from starlette.testclient import TestClient

import make.console
from agentworld.audit.checks.store import verify_everything
from agentworld.audit.questions.agents import audit_agents
from agentworld.audit.read.sources import Sources
from agentworld.ledger import Ledger
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.signing.keys import public_pem
from agentworld.storage import receipts
from agentworld_console.library import Library
from campaigns.tamper import registered, story
from campaigns.tamper.mutation import stranger
from campaigns.tamper.world import World
from make import records

PAGES = ("/", "/agents", "/in-use", "/simulators", "/datasets", "/runs", "/agents.csv", "/runs.csv")
ALIAS = "canary"
MODEL = b"weights that somebody changed"


class AuditResult(NamedTuple):
    """The output of an audit."""

    problems: frozenset[str]
    failed_pages: tuple[str, ...]
    """Lists that failed as a whole."""


class Scene(NamedTuple):
    """A store, and its audit."""

    folder: Path
    sources: Sources
    browser: TestClient
    spared: frozenset[str]
    """Runs, aliases, versions, keys and files that are not garbled."""

    @classmethod
    def of(cls, sources: Sources, ledger: Ledger, spared: set[str]) -> "Scene":
        access = sources.store / "access"
        access.mkdir()
        library = Library(sources.registry, ledger, sources.store)
        app = make.console.app(library, access)
        browser = TestClient(app, headers={"authorization": make.access.bearer("office-auditor")})
        return cls(sources.store, sources, browser, frozenset(spared))

    def look(self) -> AuditResult:
        """Runs the audit and the pages; exceptions pass through."""
        receipts._load_receipts.cache_clear()  # receipts never change, except here
        verification = verify_everything(self.sources)
        agents = audit_agents(self.sources)
        failed = [page for page in PAGES if self.browser.get(page).status_code >= 500]
        verification.model_dump_json()
        agents.model_dump_json()
        return AuditResult(frozenset(verification.problems), tuple(failed))


def of_ledger(folder: Path) -> tuple[World, Scene]:
    """A ledger of many runs, with an evidence mirror, objects, finished steps and a simulator."""
    world = story.build(folder)
    with world.named():
        ledger = world.ledger()
        edges = {item.run for item in ledger.attestations.find("edge")}
        run = next(run for run in ledger.runs() if run.id in edges)
        assert run.final_weights
        simulator = records.pinned(folder)
        simulator.attach(records.served_report())
        trainings = [_trained(folder, name) for name in ("kept", "changed")]
        records.finished_step(folder, "prepare", records.digest("data"))
        sources = world.sources(ledger)
        assert verify_everything(sources).problems == ()
        key = stranger().public_key
        with world.database.hand() as hand:
            condition = "episode IN (SELECT key FROM episodes WHERE run = ?)"
            hand.run(f"UPDATE steps SET reward = 0.125 WHERE number = 1 AND {condition}", (run.id,))
            hand.run("DELETE FROM attestations WHERE kind = 'edge' AND run = ?", (run.id,))
            alias_row = (ALIAS, run.simulator, "eve", "2026-01-01T00:00:00+00:00", False)
            hand.run(
                "INSERT INTO aliases (alias, simulator, set_by, at, ended) VALUES (?, ?, ?, ?, ?)",
                alias_row,
            )
            hand.run(
                "INSERT INTO signing_keys (key, public, since) VALUES (?, ?, '')",
                (key.keyid, public_pem(key).decode()),
            )
        stray_file = folder / "mirror/canary-folder/of nobody.txt"
        stray_file.parent.mkdir()
        stray_file.write_text("nobody's")
        changed_files = [
            folder / "models" / run.id / "model.safetensors",
            trainings[1] / "model/weights",
        ]
        for file in changed_files:
            file.write_bytes(MODEL)
        spared = {run.id, run.final_weights, ALIAS, key.keyid, str(stray_file), str(trainings[1])}
        spared |= {*map(str, changed_files), *_texts(ledger, run.id)}
        return world, Scene.of(sources, ledger, spared)


def of_registry(folder: Path) -> Scene:
    """An MLflow in a database file, with tampering in its last version and in the ledger."""
    sources = registered.built(folder)
    name = registered.AGENTS[-1]
    (version,) = [version.ref for version in sources.versions() if version.ref.name == name]
    links = sources.registry.stored(version).links
    with closing(sqlite3.connect(folder / "mlflow.db")) as database, database:
        database.execute(
            "UPDATE model_version_tags SET value = 'x' WHERE name = ? AND key = ?",
            (name, "agentworld.parents"),
        )
        # Without its run's data sets MLflow does not return the run, and there is no record to
        # compare the tag with.
        data_sets = database.execute(
            "SELECT source_id FROM inputs WHERE source_type = 'DATASET' AND destination_id = ?",
            (links.run,),
        )
        data_set_ids = {str(data_set) for (data_set,) in data_sets}
    assert data_set_ids
    with closing(sqlite3.connect(folder / "ledger.db")) as database, database:
        database.execute("UPDATE steps SET reward = 0.125")
    ledger = sources.ledger
    assert isinstance(ledger, Ledger)
    return Scene.of(sources, ledger, {name, links.run, links.model, *data_set_ids})


def _texts(ledger: Ledger, run: str) -> Iterator[str]:
    """The names of the objects that may have a run's texts."""
    for episode in ledger.episodes(run):
        yield episode.opening_digest.removeprefix("sha256:")
        for step in episode.steps:
            yield step.action_digest.removeprefix("sha256:")
            yield step.observation_digest.removeprefix("sha256:")


def _trained(folder: Path, name: str) -> Path:
    """A finished training."""
    draft = folder / f"draft-{name}"
    (draft / "model").mkdir(parents=True)
    (draft / "model/weights").write_text(name)
    artifact = ArtifactManifest.of(draft / "model").digest
    step = records.finished_step(folder, "sft", artifact, data=records.digest(name))
    (draft / "model").rename(step / "model")
    draft.rmdir()
    return step
