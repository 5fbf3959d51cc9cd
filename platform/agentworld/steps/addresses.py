"""Where a store's registry is: files in it, or what the environment names."""

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic_settings import BaseSettings

from agentworld.errors import NotFound
from agentworld.records.base import Digest, digest_json

if TYPE_CHECKING:
    from agentworld.lineage.mlflow import MlflowRegistry


class Settings(BaseSettings):
    """Addresses, from environment variables of these names."""

    mlflow_tracking_uri: str = ""
    """Empty for a database in the store."""


def open_registry(store: Path) -> "MlflowRegistry":
    """The registry that a store's versions are in."""
    from agentworld.lineage.mlflow import MlflowRegistry

    uri = Settings().mlflow_tracking_uri or f"sqlite:///{_registry_file(store)}"
    return MlflowRegistry(uri, store / "mlflow-artifacts")


def registry_digest() -> Digest:
    """Names the registry: what is registered in one is not registered in another."""
    return digest_json(Settings().mlflow_tracking_uri or "the store's own")


def check_store(store: Path) -> None:
    """Raises NotFound where nothing was ever registered, before an empty database is made."""
    if not Settings().mlflow_tracking_uri and not _registry_file(store).is_file():
        raise NotFound(f"{store} holds no registry; run `agentworld demo` or name another store")


def _registry_file(store: Path) -> Path:
    return store.resolve() / "mlflow.db"
