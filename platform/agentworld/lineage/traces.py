"""Reads the traces of an MLflow experiment as JSON lines for importers.

Lists them page by page without their spans, and reads each singly, because MLflow's search for
whole traces silently drops those whose spans cannot be read.
"""

import json
from collections.abc import Iterator
from itertools import chain

import mlflow
from mlflow.entities import Trace
from mlflow.exceptions import MlflowException
from mlflow.store.entities import PagedList
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from agentworld.errors import InputError, StoreError
from agentworld.lineage.server import Server, none_if_missing
from agentworld.recipes.environment import from_environment

_PER_PAGE = 100
_OLDEST_FIRST = ["timestamp_ms ASC"]
_MOST_NAMED = 20


class TraceServerSettings(BaseSettings):
    """The server, from environment variables of these names."""

    model_config = SettingsConfigDict(env_ignore_empty=True, frozen=True)

    mlflow_tracking_uri: str = ""
    agentworld_mlflow_patience_seconds: float = Field(120.0, ge=0)
    """The longest outage that is waited for."""


def read_lines(address: str) -> Iterator[bytes]:
    """A line of JSON for each trace of `EXPERIMENT?filter=CONDITION`, the oldest first.

    The condition is MLflow's, unescaped, and ends the address. Raises InputError for an unknown
    experiment or an invalid filter, StoreError if MLflow does not respond.
    """
    experiment, _, condition = address.partition("?filter=")
    settings = from_environment(TraceServerSettings)
    if not settings.mlflow_tracking_uri:
        raise InputError("MLflow's address is not set; set MLFLOW_TRACKING_URI")
    traces = _Traces(settings, experiment)
    names = traces.names(condition or None)
    first = next(names, None)
    if first is None:
        raise InputError(f"MLflow has no such trace: {address}; name another experiment or filter")
    for name in chain([first], names):
        yield traces.line(name) + b"\n"


class _Traces:
    """The traces of one experiment."""

    def __init__(self, settings: TraceServerSettings, experiment: str) -> None:
        uri = settings.mlflow_tracking_uri
        self._server = Server(uri, settings.agentworld_mlflow_patience_seconds)
        self._client = self._server.ask(lambda: mlflow.MlflowClient(uri))
        self._experiment = self._server.ask(lambda: self._id_of(experiment))

    def names(self, condition: str | None) -> Iterator[str]:
        """The ids of the traces that match a condition."""
        token = None
        while True:
            page = self._page(condition, token)
            for trace in page:
                yield str(trace.info.trace_id)
            token = page.token
            if not token:
                return

    def line(self, name: str) -> bytes:
        """One trace; an unreadable one has no data."""
        try:
            trace = self._server.ask(lambda: self._client.get_trace(name, display=False).to_json())
        except StoreError as error:
            if error.retryable:
                raise
            trace = json.dumps({"info": {"trace_id": name}, "data": None})
        return str(trace).encode()

    def _page(self, condition: str | None, token: str | None) -> PagedList[Trace]:
        def search() -> PagedList[Trace]:
            try:
                return self._client.search_traces(
                    filter_string=condition,
                    max_results=_PER_PAGE,
                    order_by=_OLDEST_FIRST,
                    page_token=token,
                    include_spans=False,
                    locations=[self._experiment],
                )
            except MlflowException as error:
                if error.error_code == "INVALID_PARAMETER_VALUE":
                    raise InputError(f"MLflow rejects the filter {condition!r}: {error}") from error
                raise

        return self._server.ask(search)

    def _id_of(self, experiment: str) -> str:
        entity = none_if_missing(lambda: self._client.get_experiment_by_name(experiment))
        if entity is None and experiment.isdecimal():
            entity = none_if_missing(lambda: self._client.get_experiment(experiment))
        if entity is None:
            names = [
                experiment.name
                for experiment in self._client.search_experiments(max_results=_MOST_NAMED)
            ]
            raise InputError(
                f"there is no experiment {experiment!r} in MLflow; there is {', '.join(names)}"
            )
        return str(entity.experiment_id)
