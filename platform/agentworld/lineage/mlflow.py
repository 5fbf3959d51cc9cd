"""The registry on MLflow 3: a database file here, a server on a cluster; the same calls.

A version is a registered model version whose source is a logged model (all its files) and
whose run keeps the record of its origin as `lineage.json`. Tags hold digests, so that a
retried step finds what it registered before, and an auditor what a simulator trained.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mlflow
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException
from sqlalchemy.exc import SQLAlchemyError

from agentworld.errors import InputError, StoreError
from agentworld.lineage.base import Agent, VersionRef, WorldModel, absent
from agentworld.records.base import Digest, digest_json

_EXPERIMENT = "agentworld"
_RECORD = "lineage.json"
_VARIABLES = ("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI")
_ABSENT = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")


class MlflowRegistry:
    """Opens the registry at an MLflow address; `artifacts` is where a new one keeps files."""

    def __init__(self, uri: str, artifacts: Path | None = None) -> None:
        self._uri = uri
        self._artifacts = artifacts
        for chatty in ("mlflow", "alembic"):
            logging.getLogger(chatty).setLevel(logging.WARNING)
        with self._opened():
            self._client = mlflow.MlflowClient(uri, uri)

    def register_world_model(self, name: str, what: WorldModel, model: Path) -> VersionRef:
        """A new version, or the one that this artifact has already."""
        tags = {"kind": "world-model", "artifact": what.artifact, "report": what.report}
        tags["data"] = what.stages[-1].data or ""
        for stage in what.stages:
            tags[f"{stage.stage}.artifact"] = stage.artifact
            tags[f"{stage.stage}.recipe"] = digest_json(stage.recipe)
            tags[f"{stage.stage}.parents"] = " ".join(stage.parents)
        return self._register(name, what, model, _spelled(tags), what.metrics)

    def register_agent(self, name: str, what: Agent, model: Path) -> VersionRef:
        """A new version, or the one that this artifact of this run has already."""
        made = what.checkpoint
        tags = {"kind": "agent", "artifact": what.artifact, "run": what.run}
        tags["simulator"] = made.simulator or ""
        tags["report"] = what.report or ""
        tags["parents"] = " ".join(made.parents)
        tags["recipe"] = digest_json(made.recipe)
        return self._register(name, what, model, _spelled(tags), made.metrics)

    def world_model(self, ref: VersionRef) -> WorldModel:
        """What was registered under a name and a version."""
        return WorldModel.model_validate_json(self._record(ref, "world-model"))

    def agent(self, ref: VersionRef) -> Agent:
        """What was registered under a name and a version."""
        return Agent.model_validate_json(self._record(ref, "agent"))

    def world_models_of(self, artifact: Digest) -> list[VersionRef]:
        """The versions that stand for an artifact."""
        return self._search(_where("kind", "world-model"), _where("artifact", artifact))

    def agents_of(self, run: str) -> list[VersionRef]:
        """The versions that a run made."""
        return self._search(_where("kind", "agent"), _where("run", run))

    def fetch(self, ref: VersionRef, out: Path) -> None:
        """Copies the files of a version into a folder."""
        version = self._version(ref)
        with self._opened():
            mlflow.artifacts.download_artifacts(artifact_uri=version.source, dst_path=str(out))

    def _register(
        self,
        name: str,
        what: WorldModel | Agent,
        model: Path,
        tags: dict[str, str],
        metrics: dict[str, float],
    ) -> VersionRef:
        same = [_where(tag, tags[_tag(tag)]) for tag in ("artifact", "run") if _tag(tag) in tags]
        known = self._search(f"name = '{name}'", *same)
        if known:
            return known[0]
        with self._opened():
            run = self._client.create_run(self._experiment(), tags=tags, run_name=name)
            run_id: str = run.info.run_id
            self._client.log_text(run_id, what.model_dump_json(), _RECORD)
            model_id = self._log_model(name, run_id, model, tags, metrics)
            self._client.set_terminated(run_id)
            self._name(name)
            # Last, so that a version that can be found is whole.
            version = self._client.create_model_version(
                name, source=f"models:/{model_id}", run_id=run_id, tags=tags
            )
        return VersionRef(name=name, version=int(version.version))

    def _log_model(
        self, name: str, run_id: str, model: Path, tags: dict[str, str], metrics: dict[str, float]
    ) -> str:
        logged = self._client.create_logged_model(
            self._experiment(), name=name, source_run_id=run_id, tags=tags
        )
        model_id: str = logged.model_id
        self._client.log_model_artifacts(model_id, str(model))
        for metric, value in metrics.items():
            self._client.log_metric(run_id, metric, value, model_id=model_id)
        self._client.finalize_logged_model(model_id, "READY")
        return model_id

    def _experiment(self) -> str:
        found = self._client.get_experiment_by_name(_EXPERIMENT)
        if found:
            return str(found.experiment_id)
        where = self._artifacts.resolve().as_uri() if self._artifacts else None
        return str(self._client.create_experiment(_EXPERIMENT, artifact_location=where))

    def _name(self, name: str) -> None:
        try:
            self._client.create_registered_model(name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise

    def _record(self, ref: VersionRef, kind: str) -> str:
        version = self._version(ref)
        if version.tags.get(_tag("kind")) != kind:
            raise InputError(f"{ref} is no {kind.replace('-', ' ')}; name a version of one")
        with self._opened():
            return str(mlflow.artifacts.load_text(f"runs:/{version.run_id}/{_RECORD}"))

    def _version(self, ref: VersionRef) -> ModelVersion:
        with self._opened():
            try:
                return self._client.get_model_version(ref.name, str(ref.version))
            except MlflowException as error:
                if error.error_code not in _ABSENT:
                    raise
                versions = [known.version for known in self._search(f"name = '{ref.name}'")]
                names = [model.name for model in self._client.search_registered_models()]
                raise absent(ref, versions, names) from error

    def _search(self, *conditions: str) -> list[VersionRef]:
        with self._opened():
            found = self._client.search_model_versions(" and ".join(conditions))
        refs = [VersionRef(name=version.name, version=int(version.version)) for version in found]
        return sorted(refs, key=lambda ref: (ref.name, ref.version))

    @contextmanager
    def _opened(self) -> Iterator[None]:
        """MLflow with this address, and its errors in our words."""
        try:
            with _current(self._uri):
                yield
        except (MlflowException, SQLAlchemyError) as error:  # the latter while it opens a file
            why = " ".join(str(error).split())[:200]
            raise StoreError(
                f"the registry {self._uri} failed: {why}; check that it runs"
            ) from error


@contextmanager
def _current(uri: str) -> Iterator[None]:
    """MLflow resolves `models:/` by a setting of the process, whatever a client was given.

    It also puts that setting into the environment, where it would pass for the user's own.
    """
    before = {name: os.environ.get(name) for name in _VARIABLES}
    mlflow.set_tracking_uri(uri)
    mlflow.set_registry_uri(uri)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({name: value} if value is not None else {})


def _tag(name: str) -> str:
    return f"agentworld.{name}"


def _spelled(tags: dict[str, str]) -> dict[str, str]:
    return {_tag(name): value for name, value in tags.items()}


def _where(tag: str, value: str) -> str:
    return f"tag.`{_tag(tag)}` = '{value}'"
