"""Steps' signed statements about their own work, submitted at once, as a step does at its end."""

from pathlib import Path

from agentworld.lineage.base import Agent, Registry, VersionRef, WorldModel
from agentworld.operations import registering
from agentworld.operations.statements import sign, submit
from agentworld.records.statements.registration import RegisteredVersion
from agentworld.records.statements.validation import Validation


def file(told: RegisteredVersion | Validation, store: Path) -> None:
    folder = _folder(store, told.digest)
    sign(told, store, folder)
    submit(folder, store)


def registered(
    name: str, what: WorldModel | Agent, model: Path, registry: Registry, store: Path
) -> VersionRef:
    folder = _folder(store, what.digest)
    ref = registering.register(name, what, model, registry, store, folder)
    submit(folder, store)
    return ref


def _folder(store: Path, digest: str) -> Path:
    folder = store / "handed-in" / digest.removeprefix("sha256:")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
