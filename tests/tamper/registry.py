"""MLflow in an attacker's hands: tags, runs, models and files of versions that are registered.

MLflow's database names files by whole paths, so that each change is undone in place.
"""

import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import make
import make_ledger
import make_service
from agentworld.audit.everything import verify_everything
from agentworld.audit.registration import registration_of
from agentworld.audit.sources import Sources
from agentworld.evidence.keys import STEP_KEYS, ensure_signer
from agentworld.evidence.registration import sign_registration
from agentworld.lineage.base import Agent
from agentworld.lineage.mlflow import MlflowRegistry
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.edge import Claim
from agentworld.records.run import RunClosing, RunOpening
from agentworld.steps.ledger import open_evidence
from tamper.mutation import Mutation

NAMES = ("first-agent", "second-agent", "third-agent")
STARTED = make.digest("starting")


class Place(NamedTuple):
    """A registry on a database file, with a version of each name."""

    folder: Path

    def change(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.folder / "mlflow.db")) as database, database:
            assert database.execute(statement, values).rowcount > 0

    def column(self, name: str, column: str) -> str:
        wanted = f"SELECT {column} FROM model_versions WHERE name = ?"
        with closing(sqlite3.connect(self.folder / "mlflow.db")) as database:
            return str(database.execute(wanted, (name,)).fetchone()[0])

    def tag(self, name: str, chance: random.Random) -> tuple[str, str]:
        wanted = "SELECT key, value FROM model_version_tags WHERE name = ? AND value <> ''"
        with closing(sqlite3.connect(self.folder / "mlflow.db")) as database:
            return chance.choice(database.execute(f"{wanted} ORDER BY 1", (name,)).fetchall())

    def file(self, name: str, of: str) -> Path:
        if of == "model.safetensors":
            return Path(self.column(name, "storage_location").removeprefix("file://")) / of
        return self.folder / "mlflow-artifacts" / self.column(name, "run_id") / "artifacts" / of


Change = Callable[[Place, str, str, random.Random], object]
"""Done to the version of one name, with what another has at hand."""


def _tag_changed(place: Place, name: str, _other: str, chance: random.Random) -> None:
    key, value = place.tag(name, chance)
    at = chance.randrange(len(value))
    changed = f"{value[:at]}{chr(ord(value[at]) ^ 1)}{value[at + 1 :]}"
    own = "UPDATE model_version_tags SET value = ? WHERE name = ? AND key = ?"
    place.change(own, changed, name, key)


def _tag_removed(place: Place, name: str, _other: str, chance: random.Random) -> None:
    key, _ = place.tag(name, chance)
    place.change("DELETE FROM model_version_tags WHERE name = ? AND key = ?", name, key)


def _run_deleted(place: Place, name: str, _other: str, _chance: random.Random) -> None:
    own = "UPDATE runs SET lifecycle_stage = 'deleted' WHERE run_uuid = ?"
    place.change(own, place.column(name, "run_id"))


def _run_exchanged(place: Place, name: str, other: str, _chance: random.Random) -> None:
    run = place.column(other, "run_id")
    place.change("UPDATE model_versions SET run_id = ? WHERE name = ?", run, name)


def _model_exchanged(place: Place, name: str, other: str, _chance: random.Random) -> None:
    found = place.column(other, "source"), place.column(other, "storage_location")
    own = "UPDATE model_versions SET source = ?, storage_location = ? WHERE name = ?"
    place.change(own, *found, name)


def _model_deleted(place: Place, name: str, _other: str, _chance: random.Random) -> None:
    model = place.column(name, "source").removeprefix("models:/")
    place.change("UPDATE logged_models SET lifecycle_stage = 'deleted' WHERE model_id = ?", model)


def _file_changed(place: Place, name: str, _other: str, chance: random.Random) -> None:
    files = ["model.safetensors", "lineage.json", "registration.dsse.json"]
    file = place.file(name, chance.choice(files))
    data = bytearray(file.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(7)
    file.write_bytes(data)


def _file_removed(place: Place, name: str, _other: str, chance: random.Random) -> None:
    place.file(name, chance.choice(["model.safetensors", "lineage.json"])).unlink()


def _file_exchanged(place: Place, name: str, other: str, chance: random.Random) -> None:
    of = chance.choice(["model.safetensors", "lineage.json", "registration.dsse.json"])
    shutil.copy(place.file(other, of), place.file(name, of))


def _signature_removed(place: Place, name: str, _other: str, _chance: random.Random) -> None:
    place.file(name, "registration.dsse.json").unlink()


def _made_older(place: Place, name: str, other: str, chance: random.Random) -> None:
    """As if it had been registered before anything was signed."""
    _signature_removed(place, name, other, chance)
    record = place.file(name, "lineage.json")
    record.write_text(json.dumps({**json.loads(record.read_text()), "edge": None}))


def _hidden(place: Place, name: str, _other: str, _chance: random.Random) -> None:
    """Without a tag of ours it is nobody's version."""
    place.change("DELETE FROM model_version_tags WHERE name = ?", name)


def _version_removed(place: Place, name: str, other: str, chance: random.Random) -> None:
    _hidden(place, name, other, chance)
    place.change("DELETE FROM model_versions WHERE name = ?", name)


REGISTRY_MUTATIONS: dict[str, Change] = {
    "version's tag changed": _tag_changed,
    "version's tag removed": _tag_removed,
    "registering run deleted": _run_deleted,
    "registering run exchanged": _run_exchanged,
    "model exchanged": _model_exchanged,
    "model deleted": _model_deleted,
    "version's file changed": _file_changed,
    "version's file removed": _file_removed,
    "version's file exchanged": _file_exchanged,
    "version's signature removed": _signature_removed,
    "version made older": _made_older,
    "version hidden": _hidden,
    "version removed": _version_removed,
}


def tampered(folder: Path, chance: random.Random) -> Iterator[tuple[Mutation, list[str]]]:
    """One mutation of every kind in turn and what the audit says of it; without an end."""
    place, sources = Place(folder), _built(folder)
    kept = folder.with_name("untouched")
    shutil.copytree(folder, kept)
    assert verify_everything(sources).problems == ()
    for kind, change in cycle(REGISTRY_MUTATIONS.items()):
        name, other = chance.sample(NAMES, 2)
        change(place, name, other, chance)
        told = Mutation(kind, name, frozenset({name}), _nowhere)
        yield told, [*verify_everything(sources).problems]
        _undo(kept, folder)


def _nowhere(_folder: Path) -> None:
    """It is done already."""


def _built(folder: Path) -> Sources:
    """Three agents, each with a run and its edge; the ledger beside them is not tampered with."""
    folder.mkdir(parents=True)
    ledger, sealer = make_service.ledger(folder), make_service.sealer(folder)
    registry = MlflowRegistry(f"sqlite:///{folder}/mlflow.db", folder / "mlflow-artifacts")
    signer = ensure_signer(folder / "keys" / STEP_KEYS)
    for name in NAMES:
        model = folder / name
        model.mkdir()
        (model / "model.safetensors").write_bytes(f"the weights of {name}".encode())
        artifact = ArtifactManifest.of(model).digest
        opening = RunOpening(agent=name, starting_weights=STARTED)
        run = ledger.open_run(opening, make_service.SIMULATOR)
        episode = make_ledger.open_episode(ledger, run.id, run.simulator)
        ledger.write(make_ledger.taken(episode, "[0] ~"))
        run = ledger.close_run(run.id, RunClosing(final_weights=artifact))
        sealer.seal(run.id)
        known = {"artifact": artifact, "simulator": run.simulator}
        claim = Claim(agent=name, starting_weights=STARTED, **known)
        made = make.checkpoint("agent", parents=[STARTED], **known)
        agent = Agent(checkpoint=made, run=run.id, edge=sealer.notary.edge(run, claim))
        signature = sign_registration(registration_of(name, agent), signer)
        registry.register_agent(name, agent, model, signature=signature)
    evidence = open_evidence(folder)
    return Sources(registry, ledger, folder, evidence, evidence.step_keys or {})


def _undo(kept: Path, folder: Path) -> None:
    """In the same files: MLflow keeps its database open."""
    with (
        closing(sqlite3.connect(kept / "mlflow.db")) as before,
        closing(sqlite3.connect(folder / "mlflow.db")) as database,
    ):
        before.backup(database)
    shutil.rmtree(folder / "mlflow-artifacts")
    shutil.copytree(kept / "mlflow-artifacts", folder / "mlflow-artifacts")
