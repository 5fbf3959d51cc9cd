"""Finds a store's registry: files in the store, or the server that the environment names."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.audit.checks.registration import verify_registration
from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.lineage.base import Registry, VersionRef, WorldModel
from agentworld.recipes.environment import from_environment
from agentworld.records.base import Digest, digest_json
from agentworld.records.file import check_sqlite
from agentworld.records.garbled import reading, redact
from agentworld.signing.keys import TrustedKeys
from agentworld.storage.working_copy import copy_of

if TYPE_CHECKING:
    from agentworld.lineage.mlflow import MlflowRegistry
    from agentworld.lineage.mlflow_model import MlflowModel


class RegistrySettings(BaseSettings):
    """The registry's addresses, from environment variables."""

    model_config = SettingsConfigDict(env_ignore_empty=True, frozen=True)

    mlflow_tracking_uri: str = ""
    """MLflow's address; empty uses a database in the store."""
    mlflow_workspace: str = ""
    """MLflow's workspace, on a server with workspaces."""
    mlflow_run_id: str = ""
    """The run that Kubeflow's MLflow plugin opened for this task."""
    mlflow_experiment_id: str = ""
    """The experiment of that run."""
    agentworld_mlflow_patience_seconds: float = Field(120.0, ge=0)
    """How long a step waits for a registry that does not answer."""


def open_registry(store: Path, max_patience_seconds: float = math.inf) -> "MlflowRegistry":
    """The registry of a store's versions; raises InputError and StoreError.

    It retries for as long as the environment says, and at most for `max_patience_seconds`.
    """
    settings = from_environment(RegistrySettings)
    _check_configured(settings, store)
    if not settings.mlflow_tracking_uri:
        check_sqlite(_registry_file(store))
    # A wrong setting is reported before MLflow is loaded, which takes seconds.
    from agentworld.lineage.mlflow import MlflowRegistry
    from agentworld.lineage.mlflow_versions import TaskRun

    is_task = bool(
        settings.mlflow_tracking_uri and settings.mlflow_run_id and settings.mlflow_experiment_id
    )
    return MlflowRegistry(
        _address(settings, store),
        # A server has its own artifact location, and one with workspaces accepts no other.
        None if settings.mlflow_tracking_uri.startswith("http") else store / "mlflow-artifacts",
        task=TaskRun(settings.mlflow_run_id, settings.mlflow_experiment_id) if is_task else None,
        patience_seconds=min(settings.agentworld_mlflow_patience_seconds, max_patience_seconds),
    )


def existing_registry(store: Path) -> Registry | None:
    """The registry of a store's versions; null if nothing was ever registered.

    Raises InputError and StoreError.
    """
    try:
        check_store(store)
    except NotFound:
        return None
    return open_registry(store)


def find_world_model(
    refs: Iterable[VersionRef], registry: Registry, step_keys: TrustedKeys
) -> tuple[VersionRef | None, WorldModel | None]:
    """The first readable version with its record, signed versions first.

    Raises EvidenceError if none can be read, and StoreError.
    """
    unreadable: EvidenceError | None = None
    for ref in sorted(refs, key=lambda ref: not _is_signed(ref, registry, step_keys)):
        try:
            with reading(str(ref)):
                return ref, registry.world_model(ref)
        except EvidenceError as error:
            unreadable = error
    if unreadable:
        raise unreadable
    return None, None


def _is_signed(ref: VersionRef, registry: Registry, step_keys: TrustedKeys) -> bool:
    """Whether its record is signed; the registry has the signature, so the ledger is not needed."""
    try:
        with reading(str(ref)):
            return bool(verify_registration(registry.stored(ref), step_keys))
    except (EvidenceError, NotFound):
        return False


def registered_model(store: Path, name: str, version: int) -> "MlflowModel":
    """A version of the registry, also of other programs; raises InputError and StoreError."""
    from agentworld.lineage.mlflow_model import MlflowModel

    check_store(store)
    settings = from_environment(RegistrySettings)
    patience_seconds = settings.agentworld_mlflow_patience_seconds
    return MlflowModel(_address(settings, store), name, version, patience_seconds)


def registry_digest() -> Digest:
    """Identifies the registry, because versions of one are not in another."""
    settings = from_environment(RegistrySettings)
    address = settings.mlflow_tracking_uri or "the store's own"
    return digest_json(
        [address, settings.mlflow_workspace] if settings.mlflow_workspace else address
    )


def check_store(store: Path) -> None:
    """Raises NotFound if nothing was ever registered, instead of creating an empty database, and
    InputError for a bucket without a configured registry.
    """
    settings = from_environment(RegistrySettings)
    _check_configured(settings, store)
    if not settings.mlflow_tracking_uri and not _registry_file(store).is_file():
        raise NotFound(f"{store} holds no registry; run `agentworld demo` or name another store")


def can_have_registry(store: Path) -> bool:
    """False for a bucket without a configured registry."""
    return bool(from_environment(RegistrySettings).mlflow_tracking_uri) or not copy_of(
        store.resolve()
    )


def _check_configured(settings: RegistrySettings, store: Path) -> None:
    copy = copy_of(store.resolve())
    if copy and not settings.mlflow_tracking_uri:
        raise InputError(
            f"{redact(copy.url)} is a bucket, which cannot hold a registry; set MLFLOW_TRACKING_URI"
        )


def _address(settings: RegistrySettings, store: Path) -> str:
    return settings.mlflow_tracking_uri or f"sqlite:///{_registry_file(store)}"


def _registry_file(store: Path) -> Path:
    return store.resolve() / "mlflow.db"
