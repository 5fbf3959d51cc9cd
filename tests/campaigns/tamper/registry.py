"""An attacker's changes in MLflow: tags, runs, models and files of registered versions.

MLflow's database has absolute paths of files, so each change is undone in place.
"""

import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import cycle
from pathlib import Path

from agentworld.audit.checks.store import verify_everything
from agentworld.audit.questions.agents import audit_agents
from agentworld.audit.read.sources import Sources
from campaigns.tamper.links import LINK_MUTATIONS, OF_AGENTS
from campaigns.tamper.mutation import Mutation
from campaigns.tamper.registered import AGENTS, NAMES, built
from campaigns.tamper.validations import OF_VALIDATED, VALIDATED, VALIDATION_MUTATIONS
from campaigns.tamper.victim import Change, Victim, statement

_SMALL_FILES = ("lineage.json", "registration.dsse.json")


def _tag_changed(victim: Victim) -> None:
    key, value = victim.tag()
    index = victim.chance.randrange(len(value))
    changed_value = f"{value[:index]}{chr(ord(value[index]) ^ 1)}{value[index + 1 :]}"
    query = "UPDATE model_version_tags SET value = ? WHERE name = ? AND key = ?"
    victim.change(query, changed_value, victim.name, key)


def _tag_removed(victim: Victim) -> None:
    key, _ = victim.tag()
    query = "DELETE FROM model_version_tags WHERE name = ? AND key = ?"
    victim.change(query, victim.name, key)


def _model_exchanged(victim: Victim) -> None:
    other = victim.other
    query = "UPDATE model_versions SET source = ?, storage_location = ? WHERE name = ?"
    victim.change(query, other.column("source"), other.column("storage_location"), victim.name)


def _file_changed(victim: Victim) -> None:
    file = victim.file(victim.chance.choice(["model.safetensors", *_SMALL_FILES]))
    data = bytearray(file.read_bytes())
    data[victim.chance.randrange(len(data))] ^= 1 << victim.chance.randrange(7)
    file.write_bytes(data)


def _file_removed(victim: Victim) -> None:
    victim.file(victim.chance.choice(["model.safetensors", "lineage.json"])).unlink()


def _file_exchanged(victim: Victim) -> None:
    name = victim.chance.choice(["model.safetensors", *_SMALL_FILES])
    shutil.copy(victim.other.file(name), victim.file(name))


def _signature_removed(victim: Victim) -> None:
    victim.file("registration.dsse.json").unlink()


def _made_older(victim: Victim) -> None:
    """As if it had been registered before signing began."""
    _signature_removed(victim)
    record = victim.file("lineage.json")
    fields = json.loads(record.read_text())
    record.write_text(json.dumps({**fields, "edge": None} if victim.name in AGENTS else fields))


def _version_removed(victim: Victim) -> None:
    for table in ("model_version_tags", "model_versions"):
        victim.change(f"DELETE FROM {table} WHERE name = ?", victim.name)


REGISTRY_MUTATIONS: dict[str, Change] = {
    "version's tag changed": _tag_changed,
    "version's tag removed": _tag_removed,
    "registering run deleted": statement(
        "UPDATE runs SET lifecycle_stage = 'deleted' WHERE run_uuid = :run"
    ),
    "registering run exchanged": statement(
        "UPDATE model_versions SET run_id = :other_run WHERE name = :name"
    ),
    "model exchanged": _model_exchanged,
    "model deleted": statement(
        "UPDATE logged_models SET lifecycle_stage = 'deleted' WHERE model_id = :model"
    ),
    "version's file changed": _file_changed,
    "version's file removed": _file_removed,
    "version's file exchanged": _file_exchanged,
    "version's signature removed": _signature_removed,
    "version made older": _made_older,
    # Without our tags, it is not one of our versions.
    "version hidden": statement("DELETE FROM model_version_tags WHERE name = :name"),
    "version removed": _version_removed,
    **LINK_MUTATIONS,
    **VALIDATION_MUTATIONS,
}


def tampered(folder: Path, chance: random.Random) -> Iterator[tuple[str, Mutation, list[str]]]:
    """One mutation of every kind in rotation, with the audit's findings; endless."""
    sources, backup = built(folder), folder.with_name("untouched")
    shutil.copytree(folder, backup)
    verification = verify_everything(sources)
    assert (verification.problems, verification.num_unsigned) == ((), 0)
    for kind, change in cycle(REGISTRY_MUTATIONS.items()):
        name, other_name = chance.sample(_names(kind), 2)
        victim = Victim(folder, chance, name, other_name)
        mutation = Mutation(frozenset({name, *victim.steps()}), lambda _: None, name)
        change(victim)
        yield kind, mutation, [*verify_everything(sources).problems, *_doubts(kind, sources)]
        _undo(backup, folder)


def _names(kind: str) -> tuple[str, ...]:
    if kind in VALIDATION_MUTATIONS:
        return VALIDATED if kind in OF_VALIDATED else AGENTS[-1:] * 2
    return AGENTS if kind in OF_AGENTS else NAMES


def _doubts(kind: str, sources: Sources) -> list[str]:
    """The reasons why an agent in use has still to be revalidated, despite a report."""
    if kind not in VALIDATION_MUTATIONS:
        return []
    agents = audit_agents(sources).agents
    return [
        f"{agent.agent}: {item.problem}"
        for agent in agents
        for item in agent.revalidate
        if item.problem
    ]


def _undo(backup: Path, folder: Path) -> None:
    """Restores the same files, because MLflow keeps its database open."""
    with (
        closing(sqlite3.connect(backup / "mlflow.db")) as original,
        closing(sqlite3.connect(folder / "mlflow.db")) as database,
    ):
        original.backup(database)
    for name in ("mlflow-artifacts", "steps"):
        shutil.rmtree(folder / name)
        shutil.copytree(backup / name, folder / name)
