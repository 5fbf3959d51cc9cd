"""Steps' signed statements about their own work, submitted at once, as a step does at its end."""

from pathlib import Path

from agentworld.lineage.base import Agent, Registry, VersionRef, WorldModel
from agentworld.operations import registering
from agentworld.operations.statements import sign, submit
from agentworld.records.statements.registration import RegisteredVersion
from agentworld.records.statements.validation import Validation


def file(statement: RegisteredVersion | Validation, store: Path) -> None:
    folder = _folder(store, statement.digest)
    sign(statement, store, folder)
    submit(folder, store)


def registered(
    name: str, entity: WorldModel | Agent, model: Path, registry: Registry, store: Path
) -> VersionRef:
    folder = _folder(store, entity.digest)
    ref = registering.register(name, entity, model, registry, store, folder)
    submit(folder, store)
    return ref


def _folder(store: Path, digest: str) -> Path:
    folder = store / "handed-in" / digest.removeprefix("sha256:")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
