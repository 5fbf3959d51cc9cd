"""MLflow in an attacker's hands: tags, runs, models and files of versions that are registered.

MLflow's database names files by whole paths, so that each change is undone in place.
"""

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import make
from agentworld.errors import AgentworldError
from agentworld.evidence.keys import STEP_KEYS, ensure_signer, load_trusted
from agentworld.lineage.base import Agent
from agentworld.lineage.mlflow import MlflowRegistry
from agentworld.records.checkpoint import ArtifactManifest
from tamper.mutation import Mutation

NAMES = ("first-agent", "second-agent", "third-agent")
JUDGED = find_spec("agentworld.audit.registration") is not None
"""Whether the audit compares a version with what was signed of it."""


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
}


def tampered(folder: Path, chance: random.Random) -> Iterator[tuple[Mutation, list[str]]]:
    """One mutation of every kind in turn and what the audit says of it; without an end."""
    place, registry = Place(folder), _built(folder)
    kept = folder.with_name("untouched")
    shutil.copytree(folder, kept)
    assert _problems(place, registry) == []
    for kind, change in cycle(REGISTRY_MUTATIONS.items()):
        name, other = chance.sample(NAMES, 2)
        change(place, name, other, chance)
        told = Mutation(kind, name, frozenset({name}), _nowhere)
        yield told, _problems(place, registry)
        _undo(kept, folder)


def _nowhere(_folder: Path) -> None:
    """It is done already."""


def _built(folder: Path) -> MlflowRegistry:
    form, statement = (
        import_module(f"agentworld.{room}.registration") for room in ("audit", "evidence")
    )
    folder.mkdir(parents=True)
    registry = MlflowRegistry(f"sqlite:///{folder}/mlflow.db", folder / "mlflow-artifacts")
    signer = ensure_signer(folder / STEP_KEYS)
    for name in NAMES:
        model = folder / name
        model.mkdir()
        (model / "model.safetensors").write_bytes(f"the weights of {name}".encode())
        known = {"parents": [make.digest("starting")], "simulator": make.digest("simulator")}
        made = make.checkpoint("agent", artifact=ArtifactManifest.of(model).digest, **known)
        agent = Agent(checkpoint=made, run=f"run-of-{name}")
        signed: dict[str, Any] = {
            "signature": statement.sign_registration(form.registration_of(name, agent), signer)
        }
        registry.register_agent(name, agent, model, **signed)
    return registry


def _problems(place: Place, registry: Any) -> list[str]:
    verify = import_module("agentworld.audit.registry").verify_version
    trusted, told = load_trusted(place.folder / STEP_KEYS), list[str]()
    for version in registry.versions():
        try:
            told += verify(registry.stored(version.ref), registry, trusted).problems
        except AgentworldError as error:
            told.append(f"{version.ref}: {error}")
    return told


def _undo(kept: Path, folder: Path) -> None:
    """In the same files: MLflow keeps its database open."""
    with (
        closing(sqlite3.connect(kept / "mlflow.db")) as before,
        closing(sqlite3.connect(folder / "mlflow.db")) as database,
    ):
        before.backup(database)
    shutil.rmtree(folder / "mlflow-artifacts")
    shutil.copytree(kept / "mlflow-artifacts", folder / "mlflow-artifacts")
