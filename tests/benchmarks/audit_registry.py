"""Writes versions into a real MLflow database in bulk: its API takes 35 ms for each, and increases.

Names and tags come from the registry's own code; only the insertion differs.
"""

import time
import uuid
from pathlib import Path
from typing import NamedTuple

from mlflow import MlflowClient
from mlflow.store.model_registry.dbmodels import models as registered
from mlflow.store.tracking.dbmodels import models as tracked
from sqlalchemy import Table, create_engine, insert

from agentworld.lineage.base import Agent, VersionRef, WorldModel
from agentworld.lineage.inputs import Inputs
from agentworld.lineage.mlflow import MlflowRegistry
from agentworld.lineage.mlflow_versions import mlflow_tag
from agentworld.lineage.tags import tags_of
from agentworld.records.statements.registration import Links

Columns = dict[str, object]

_NAMED = registered.SqlRegisteredModel.__table__
_RUNS = tracked.SqlRun.__table__
_RUN_TAGS = tracked.SqlTag.__table__
_MODELS = tracked.SqlLoggedModel.__table__
_MODEL_TAGS = tracked.SqlLoggedModelTag.__table__
_VERSIONS = registered.SqlModelVersion.__table__
_VERSION_TAGS = registered.SqlModelVersionTag.__table__
_TABLES: tuple[Table, ...] = (
    *(_NAMED, _RUNS, _RUN_TAGS, _MODELS, _MODEL_TAGS, _VERSIONS, _VERSION_TAGS),
)


class BulkRegistry(MlflowRegistry):
    """A registry whose versions exist after `settle`; there must be no other writer."""

    def __init__(self, store: Path) -> None:
        uri = f"sqlite:///{store}/mlflow.db"
        self._files = store / "mlflow-artifacts"
        super().__init__(uri, self._files)
        self._engine = create_engine(uri)
        self.links: dict[VersionRef, Links] = {}
        """The run and the model of each version, which its registration names."""
        self._numbers: dict[str, int] = {}
        self._rows: dict[Table, list[Columns]] = {table: [] for table in _TABLES}
        self._experiment_id = int(self._ask(self._experiment))

    @property
    def client(self) -> MlflowClient:
        """MLflow's client for the same database."""
        return self._client

    def settle(self) -> None:
        """Writes all versions."""
        with self._engine.begin() as connection:
            for table, rows in self._rows.items():
                if rows:
                    connection.execute(insert(table), rows)
                rows.clear()

    def _register(
        self,
        name: str,
        what: WorldModel | Agent,
        _model: Path,
        _metrics: dict[str, float],
        _inputs: Inputs,
        _signature: str | None,
    ) -> VersionRef:
        tags = {mlflow_tag(tag): value for tag, value in tags_of(what).items()}
        now = round(1e3 * time.time())
        if name not in self._numbers:
            self._rows[_NAMED].append(
                {"name": name, "creation_time": now, "last_updated_time": now}
            )
        version = self._numbers[name] = self._numbers.get(name, 0) + 1
        version_row = _Made(name, version, uuid.uuid4().hex, f"m-{uuid.uuid4().hex}", now)
        record = self._files / version_row.run / "artifacts" / "lineage.json"
        record.parent.mkdir(parents=True)
        record.write_text(what.model_dump_json())
        for table, row in self._made(version_row).items():
            self._rows[table].append(row)
        for key, value in tags.items():
            tag = {"key": key, "value": value}
            self._rows[_RUN_TAGS].append({**tag, "run_uuid": version_row.run})
            self._rows[_VERSION_TAGS].append({**tag, "name": name, "version": version})
            model_tag = {"tag_key": key, "tag_value": value, "experiment_id": self._experiment_id}
            self._rows[_MODEL_TAGS].append({**model_tag, "model_id": version_row.model})
        ref = VersionRef(name=name, version=version)
        self.links[ref] = Links(run=version_row.run, model=version_row.model)
        return ref

    def _made(self, version_row: "_Made") -> dict[Table, Columns]:
        common = {
            "experiment_id": self._experiment_id,
            "lifecycle_stage": "active",
            "name": version_row.name,
        }
        files = f"{self._files.as_uri()}/models/{version_row.model}/artifacts"
        run = {
            "run_uuid": version_row.run,
            "source_type": "UNKNOWN",
            "user_id": "unknown",
            "status": "FINISHED",
            "start_time": version_row.at,
            "end_time": version_row.at,
            "artifact_uri": f"{self._files.as_uri()}/{version_row.run}/artifacts",
        }
        model = {
            "model_id": version_row.model,
            "artifact_location": files,
            "creation_timestamp_ms": version_row.at,
            "last_updated_timestamp_ms": version_row.at,
            "status": 2,
            "source_run_id": version_row.run,
        }
        version = {
            "name": version_row.name,
            "version": version_row.version,
            "creation_time": version_row.at,
            "last_updated_time": version_row.at,
            "current_stage": "None",
            "source": f"models:/{version_row.model}",
            "run_id": version_row.run,
            "status": "READY",
            "storage_location": files,
        }
        return {_RUNS: {**common, **run}, _MODELS: {**common, **model}, _VERSIONS: version}


class _Made(NamedTuple):
    name: str
    version: int
    run: str
    model: str
    at: int
    """Milliseconds since 1970."""
