"""MLflow in an attacker's hands: tags, runs, models and files of versions that are registered.

MLflow's database names files by whole paths, so that each change is undone in place.
"""

import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import cycle
from pathlib import Path

from agentworld.audit.agents import audit_agents
from agentworld.audit.everything import verify_everything
from agentworld.audit.sources import Sources
from tamper.links import LINK_MUTATIONS, OF_AGENTS
from tamper.mutation import Mutation
from tamper.place import Change, Place
from tamper.registered import AGENTS, NAMES, built
from tamper.validations import OF_VALIDATED, VALIDATED, VALIDATION_MUTATIONS


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
    own = "UPDATE logged_models SET lifecycle_stage = 'deleted' WHERE model_id = ?"
    place.change(own, place.model(name))


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
    told = json.loads(record.read_text())
    record.write_text(json.dumps({**told, "edge": None} if name in AGENTS else told))


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
    **LINK_MUTATIONS,
    **VALIDATION_MUTATIONS,
}


def tampered(folder: Path, chance: random.Random) -> Iterator[tuple[Mutation, list[str]]]:
    """One mutation of every kind in turn and what the audit says of it; without an end."""
    sources, place = built(folder), Place(folder)
    kept = folder.with_name("untouched")
    shutil.copytree(folder, kept)
    untouched = verify_everything(sources)
    assert (untouched.problems, untouched.num_unsigned) == ((), 0)
    for kind, change in cycle(REGISTRY_MUTATIONS.items()):
        name, other = chance.sample(_names(kind), 2)
        told = Mutation(kind, name, frozenset({name, *place.steps_of(name)}), _nowhere)
        change(place, name, other, chance)
        yield told, [*verify_everything(sources).problems, *_doubts(kind, sources)]
        _undo(kept, folder)


def _names(kind: str) -> tuple[str, ...]:
    if kind in VALIDATION_MUTATIONS:
        return VALIDATED if kind in OF_VALIDATED else AGENTS[-1:] * 2
    return AGENTS if kind in OF_AGENTS else NAMES


def _doubts(kind: str, sources: Sources) -> list[str]:
    """Why an agent in use has still to be validated, though there is a report."""
    if kind not in VALIDATION_MUTATIONS:
        return []
    agents = audit_agents(sources).agents
    return [
        f"{each.agent}: {why.problem}" for each in agents for why in each.revalidate if why.problem
    ]


def _nowhere(_folder: Path) -> None:
    """It is done already."""


def _undo(kept: Path, folder: Path) -> None:
    """In the same files: MLflow keeps its database open."""
    with (
        closing(sqlite3.connect(kept / "mlflow.db")) as before,
        closing(sqlite3.connect(folder / "mlflow.db")) as database,
    ):
        before.backup(database)
    for name in ("mlflow-artifacts", "steps"):
        shutil.rmtree(folder / name)
        shutil.copytree(kept / name, folder / name)
