"""What may change of a version that is registered: the aliases that mean it, and a tag on it.

Both are mirrors, for who looks at MLflow alone; what is true stands in the ledger.
"""

from collections.abc import Callable
from typing import TypeVar

from mlflow import MlflowClient
from mlflow.entities.model_registry import RegisteredModel
from mlflow.exceptions import MlflowException
from mlflow.store.entities.paged_list import PagedList

from agentworld.lineage.base import VersionRef
from agentworld.lineage.server import Server
from agentworld.records.garbled import ReadResult, read_each, reading

PREFIX = "agentworld."
"""What our tags begin with."""

_ABSENT = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")

_Entity = TypeVar("_Entity")


class MlflowAliases:
    """Of all the models of an MLflow."""

    def __init__(self, server: Server, client: MlflowClient) -> None:
        self._ask = server.ask
        self._client = client

    def mark(self, ref: VersionRef, tag: str, value: str | None) -> None:
        """Sets a tag of a version, or takes it away; nothing else of it changes."""
        number, name = str(ref.version), f"{PREFIX}{tag}"
        current = self._ask(lambda: self._client.get_model_version(ref.name, number)).tags.get(name)
        if value is None and current is not None:
            self._ask(lambda: self._client.delete_model_version_tag(ref.name, number, name))
        elif value is not None and value != current:
            self._ask(lambda: self._client.set_model_version_tag(ref.name, number, name, value))

    def set_alias(self, ref: VersionRef, alias: str) -> None:
        """From now on the alias of this name is this version."""
        number = str(ref.version)
        self._ask(lambda: self._client.set_registered_model_alias(ref.name, alias, number))

    def remove_alias(self, name: str, alias: str) -> None:
        """Takes an alias of a name away; what is not there stays so."""
        if (name, alias) in self.aliases():
            self._ask(lambda: self._client.delete_registered_model_alias(name, alias))

    def aliases(self) -> dict[tuple[str, str], int]:
        """The versions that names and their aliases stand for; also of what others registered."""
        return dict(self._aliases().records)

    def _aliases(self) -> ReadResult[tuple[tuple[str, str], int]]:
        search = self._client.search_registered_models
        models: list[RegisteredModel] = self._ask(lambda: every(search))
        rows = [(model.name, *alias) for model in models for alias in model.aliases.items()]
        return read_each(rows, _alias)


def _alias(row: tuple[str, str, str]) -> tuple[tuple[str, str], int]:
    name, alias, version = row
    with reading(f"the registry's alias {alias!r} of {name!r}"):
        return (name, alias), int(version)


def none_if_missing(get: Callable[[], _Entity]) -> _Entity | None:
    """What is got, or null where it is not there."""
    try:
        return get()
    except MlflowException as error:
        if error.error_code not in _ABSENT:
            raise
        return None


def every(search: Callable[..., PagedList[_Entity]], condition: str | None = None) -> list[_Entity]:
    """All that a search finds, page by page."""
    token, entities = None, list[_Entity]()
    while True:
        page = search(condition, page_token=token)
        entities += page
        token = page.token
        if not token:
            return entities
