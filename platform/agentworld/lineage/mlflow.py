"""The registry on MLflow 3: a database file here, a server on a cluster; the same calls.

A version is a registered model version whose source is a logged model (all its files) and
whose run keeps the record of its origin as `lineage.json`. Tags hold digests, so that a
retried step finds what it registered before, and an auditor what a simulator trained.
"""

import logging
from pathlib import Path
from typing import NamedTuple

import mlflow
from mlflow.entities import Metric, Run
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException

from agentworld.errors import InputError
from agentworld.lineage.base import Agent, VersionRef, WorldModel, absent
from agentworld.lineage.server import PATIENCE_SECONDS, Server
from agentworld.records.base import Digest, digest_bytes, digest_json

_EXPERIMENT = "agentworld"
_RECORD = "lineage.json"
_ABSENT = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")
_SAME_VERSION = ("artifact", "run")
_SAME_ATTEMPT = (*_SAME_VERSION, "report")


class TaskRun(NamedTuple):
    """The run that Kubeflow's plugin opened for a task; nobody else writes to it or ends it."""

    run: str
    experiment: str


class MlflowRegistry:
    """Opens the registry at an MLflow address; `artifacts` is where a new one keeps files."""

    def __init__(
        self,
        uri: str,
        artifacts: Path | None = None,
        *,
        task: TaskRun | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._artifacts = artifacts
        self._task = task
        self._ask = Server(uri, patience_seconds).ask
        for chatty in ("mlflow", "alembic"):
            logging.getLogger(chatty).setLevel(logging.WARNING)
        self._client = self._ask(lambda: mlflow.MlflowClient(uri, uri))

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
        if what.edge:
            edge = what.edge.edge
            tags["edge.grade"] = edge.grade
            tags["edge.simulator"] = edge.simulator
            tags["edge"] = digest_bytes(what.edge.envelope.encode())
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
        source = self._version(ref).source
        self._ask(
            lambda: mlflow.artifacts.download_artifacts(artifact_uri=source, dst_path=str(out))
        )

    def _register(
        self,
        name: str,
        what: WorldModel | Agent,
        model: Path,
        tags: dict[str, str],
        metrics: dict[str, float],
    ) -> VersionRef:
        if known := self._ask(lambda: self._registered(name, tags)):
            return known
        experiment = self._ask(self._experiment)
        run = self._ask(lambda: self._run(experiment, name, tags))
        run_id: str = run.info.run_id
        self._ask(lambda: self._client.log_text(run_id, what.model_dump_json(), _RECORD))
        model_id = self._ask(lambda: self._logged_model(experiment, name, run_id, tags))
        self._ask(lambda: self._client.log_model_artifacts(model_id, str(model)))
        self._ask(lambda: self._log_metrics(run, model_id, metrics))
        self._ask(lambda: self._client.finalize_logged_model(model_id, "READY"))
        self._ask(lambda: self._client.set_terminated(run_id))
        self._ask(lambda: self._name(name))
        # Last, so that a version that can be found is whole.
        return self._ask(
            lambda: self._registered(name, tags) or self._make(name, run_id, model_id, tags)
        )

    def _registered(self, name: str, tags: dict[str, str]) -> VersionRef | None:
        return next(iter(self._found(f"name = '{name}'", *_same(tags, _SAME_VERSION))), None)

    def _run(self, experiment: str, name: str, tags: dict[str, str]) -> Run:
        """A new run, or the one of an attempt that came to no version."""
        same = " and ".join((f"attributes.run_name = '{name}'", *_same(tags, _SAME_ATTEMPT)))
        begun = self._client.search_runs([experiment], same, max_results=1)
        run = begun[0] if begun else self._client.create_run(experiment, tags=tags, run_name=name)
        for tag, value in self._of_task("mlflow.parentRunId").items():
            self._client.set_tag(run.info.run_id, tag, value)
        return run

    def _logged_model(self, experiment: str, name: str, run_id: str, tags: dict[str, str]) -> str:
        begun = self._client.search_logged_models([experiment], f"source_run_id = '{run_id}'")
        logged = begun[0] if begun else None
        if logged is None:
            logged = self._client.create_logged_model(
                experiment, name=name, source_run_id=run_id, tags=tags
            )
        return str(logged.model_id)

    def _log_metrics(self, run: Run, model_id: str, metrics: dict[str, float]) -> None:
        # At one time, so that an attempt that is repeated adds none.
        values = [
            Metric(name, value, run.info.start_time, 0, model_id=model_id)
            for name, value in metrics.items()
        ]
        self._client.log_batch(run.info.run_id, metrics=values)

    def _make(self, name: str, run_id: str, model_id: str, tags: dict[str, str]) -> VersionRef:
        version = self._client.create_model_version(
            name,
            source=f"models:/{model_id}",
            run_id=run_id,
            tags=tags | self._of_task(),
            model_id=model_id,  # a server refuses a source of whose model it is not told
        )
        return VersionRef(name=name, version=int(version.version))

    def _of_task(self, *more: str) -> dict[str, str]:
        """Tags that name the task's run, where there is one."""
        names = (_tag("kubeflow_run"), *more)
        return dict.fromkeys(names, self._task.run) if self._task else {}

    def _experiment(self) -> str:
        if self._task:
            return self._task.experiment
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
        record = f"runs:/{version.run_id}/{_RECORD}"
        return str(self._ask(lambda: mlflow.artifacts.load_text(record)))

    def _version(self, ref: VersionRef) -> ModelVersion:
        version = self._ask(lambda: self._version_if_there(ref))
        if version is None:
            versions = [known.version for known in self._search(f"name = '{ref.name}'")]
            models = self._ask(self._client.search_registered_models)
            raise absent(ref, versions, [model.name for model in models])
        return version

    def _version_if_there(self, ref: VersionRef) -> ModelVersion | None:
        try:
            return self._client.get_model_version(ref.name, str(ref.version))
        except MlflowException as error:
            if error.error_code not in _ABSENT:
                raise
            return None

    def _search(self, *conditions: str) -> list[VersionRef]:
        return self._ask(lambda: self._found(*conditions))

    def _found(self, *conditions: str) -> list[VersionRef]:
        found = self._client.search_model_versions(" and ".join(conditions))
        refs = [VersionRef(name=version.name, version=int(version.version)) for version in found]
        return sorted(refs, key=lambda ref: (ref.name, ref.version))


def _tag(name: str) -> str:
    return f"agentworld.{name}"


def _spelled(tags: dict[str, str]) -> dict[str, str]:
    return {_tag(name): value for name, value in tags.items()}


def _where(tag: str, value: str) -> str:
    return f"tags.`{_tag(tag)}` = '{value}'"


def _same(tags: dict[str, str], names: tuple[str, ...]) -> list[str]:
    """Conditions for what has the same values of these tags."""
    return [_where(name, tags[_tag(name)]) for name in names if _tag(name) in tags]
