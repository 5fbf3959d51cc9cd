"""The registry on MLflow 3: a database file here, a server on a cluster; the same calls.

A version is a registered model version whose source is a logged model (all its files) and
whose run keeps the record of its origin as `lineage.json`, and a signed statement of that beside
it. Tags hold digests, so that a retried step finds what it registered before, and an auditor what
a simulator trained; the run's inputs tell the same in MLflow's own words.
"""

import logging
from pathlib import Path
from typing import Any

import mlflow
from mlflow.entities import Metric, Run
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException

from agentworld.errors import InputError
from agentworld.lineage.base import (
    Agent,
    StoredVersion,
    Version,
    VersionRef,
    WorldModel,
    absent,
    parse_record,
)
from agentworld.lineage.inputs import Inputs
from agentworld.lineage.mlflow_aliases import every, none_if_missing
from agentworld.lineage.mlflow_datasets import TaskRun
from agentworld.lineage.mlflow_trainings import MlflowTrainings
from agentworld.lineage.model_version import (
    MlflowVersion,
    check_whole,
    is_ours,
    is_searchable,
    logged_model_of,
    mlflow_tag,
    ref_of,
    same,
    summary_of,
    where,
)
from agentworld.lineage.server import PATIENCE_SECONDS, Server, download, read_text
from agentworld.lineage.tags import tags_of
from agentworld.records.base import Digest
from agentworld.records.garbled import ReadResult, read_each

_RECORD = "lineage.json"
_SIGNATURE = "registration.dsse.json"
_OF_RUN = (_RECORD, _SIGNATURE)
_SAME_VERSION = ("artifact", "run", "edge")
_SAME_ATTEMPT = (*_SAME_VERSION, "report")


class MlflowRegistry(MlflowTrainings):
    """Opens the registry at an MLflow address; `artifacts` is where a new one keeps files."""

    def __init__(
        self,
        uri: str,
        artifacts: Path | None = None,
        *,
        task: TaskRun | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        server = Server(uri, patience_seconds)
        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.WARNING)
        # It prints a traceback of what is told here in a sentence.
        logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
        client = server.ask(lambda: mlflow.MlflowClient(uri, uri))
        super().__init__(server, client, artifacts, task)

    def register_world_model(
        self, name: str, entity: WorldModel, model: Path, *, signature: str | None = None
    ) -> VersionRef:
        """A new version, or the one that this artifact has already."""
        return self._register(
            name, entity, model, entity.metrics, Inputs.of(entity.stages), signature
        )

    def register_agent(
        self,
        name: str,
        entity: Agent,
        model: Path,
        *,
        signature: str | None = None,
        world_model: VersionRef | None = None,
    ) -> VersionRef:
        """A new version, or the one that this artifact of this run has already."""
        model_id = logged_model_of(self._version(world_model)) if world_model else None
        inputs = Inputs.of(entity.stages, model_id)
        return self._register(name, entity, model, entity.checkpoint.metrics, inputs, signature)

    def world_model(self, ref: VersionRef) -> WorldModel:
        """What was registered under a name and a version."""
        return parse_record(WorldModel, ref, self._record(ref, "world-model"))

    def agent(self, ref: VersionRef) -> Agent:
        """What was registered under a name and a version."""
        return parse_record(Agent, ref, self._record(ref, "agent"))

    def world_models_of(self, artifact: Digest) -> list[VersionRef]:
        """The versions that stand for an artifact."""
        return [version.ref for version in self.versions(artifact=artifact, kind="world-model")]

    def agents_of(self, run: str) -> list[VersionRef]:
        """The versions that a run made."""
        return [version.ref for version in self.versions(run=run, kind="agent")]

    def versions(self, **tags: str) -> list[Version]:
        """All versions with these values of tags, in the order of names and versions.

        MLflow looks through the tags of all versions for each condition, so that it is told one
        alone: the first, but for the kind, which says the least.
        """
        conditions = sorted(tags.items(), key=lambda tag: tag[0] == "kind")
        first = next((where(*tag) for tag in conditions if is_searchable(tag[1])), None)
        versions = [
            version for version in self._read(first).records if tags.items() <= version.tags.items()
        ]
        return sorted(versions, key=lambda version: (version.ref.name, version.ref.version))

    def garbled(self) -> list[str]:
        """A sentence for each version and alias that can be none of ours, though it says so."""
        return [*self._read().problems, *self._aliases().problems]

    def version(self, ref: VersionRef) -> Version:
        """One version."""
        return summary_of(self._version(ref))

    def stored(self, ref: VersionRef) -> StoredVersion:
        """All that is kept of a version, but for its files."""
        version = self._version(ref)
        run: Run | None = None
        if version.run_id:  # MLflow cannot ask for what has no name
            run = self._ask(lambda: none_if_missing(lambda: self._client.get_run(version.run_id)))
        files = self._ask(lambda: self._client.list_artifacts(version.run_id)) if run else []
        model, number = logged_model_of(version), str(ref.version)
        snapshot = MlflowVersion(
            version=version,
            run=run,
            model=self._ask(lambda: none_if_missing(lambda: self._client.get_logged_model(model))),
            files=self._ask(lambda: self._client.get_model_version_download_uri(ref.name, number)),
        )
        names = {file.path for file in files}
        of_run = [self._text(version, name) if name in names else None for name in _OF_RUN]
        return snapshot.with_files_of_run(*of_run)

    def agents(self, limit: int) -> list[Version]:
        """So many registered agents at most, the newest first."""
        newest = ["creation_timestamp DESC", "version_number DESC"]
        condition = where("kind", "agent")
        versions = self._ask(lambda: self._client.search_model_versions(condition, limit, newest))
        return read_each(versions, summary_of).records

    def fetch(self, ref: VersionRef, target: Path) -> None:
        """Copies the files of a version into a folder."""
        version = self._version(ref)
        model_id = logged_model_of(version)
        model = self._ask(lambda: none_if_missing(lambda: self._client.get_logged_model(model_id)))
        location = model.artifact_location if model else None
        self._ask(lambda: download(version.source, location, target))

    def _register(
        self,
        name: str,
        entity: WorldModel | Agent,
        model: Path,
        metrics: dict[str, float],
        inputs: Inputs,
        signature: str | None,
    ) -> VersionRef:
        tags = {mlflow_tag(tag): value for tag, value in tags_of(entity).items()}
        if ref := self._ask(lambda: self._find_registered(name, tags)):
            return ref
        experiment = self._ask(self._experiment)
        run = self._ask(lambda: self._run(experiment, name, tags))
        run_id: str = run.info.run_id
        self._ask(lambda: self._client.log_text(run_id, entity.model_dump_json(), _RECORD))
        if signature:
            self._ask(lambda: self._client.log_text(run_id, signature, _SIGNATURE))
        self._ask(lambda: self._client.log_inputs(run_id, *inputs))
        model_id = self._ask(lambda: self._logged_model(experiment, name, run_id, tags))
        self._ask(lambda: self._client.log_model_artifacts(model_id, str(model)))
        self._ask(lambda: self._log_metrics(run, model_id, metrics))
        self._ask(lambda: self._client.finalize_logged_model(model_id, "READY"))
        self._ask(lambda: self._client.set_terminated(run_id))
        self._ask(lambda: self._name(name))
        # Last, so that a version that can be found is whole.
        return self._ask(
            lambda: (
                self._find_registered(name, tags)
                or self._make(name, run_id, model_id, tags, inputs)
            )
        )

    def _find_registered(self, name: str, tags: dict[str, str]) -> VersionRef | None:
        return next(iter(self._search(f"name = '{name}'", *same(tags, _SAME_VERSION))), None)

    def _run(self, experiment: str, name: str, tags: dict[str, str]) -> Run:
        """A new run, or the one of an attempt that came to no version."""
        condition = " and ".join((f"attributes.run_name = '{name}'", *same(tags, _SAME_ATTEMPT)))
        runs = self._client.search_runs([experiment], condition, max_results=1)
        run = runs[0] if runs else self._client.create_run(experiment, tags=tags, run_name=name)
        for tag, value in self._of_task("mlflow.parentRunId").items():
            self._client.set_tag(run.info.run_id, tag, value)
        return run

    def _logged_model(self, experiment: str, name: str, run_id: str, tags: dict[str, str]) -> str:
        models = self._client.search_logged_models([experiment], f"source_run_id = '{run_id}'")
        new: dict[str, Any] = {"name": name, "source_run_id": run_id, "tags": tags}
        logged = models[0] if models else self._client.create_logged_model(experiment, **new)
        return str(logged.model_id)

    def _log_metrics(self, run: Run, model_id: str, metrics: dict[str, float]) -> None:
        # At one time, so that an attempt that is repeated adds none.
        values = [
            Metric(name, value, run.info.start_time, 0, model_id=model_id)
            for name, value in metrics.items()
        ]
        self._client.log_batch(run.info.run_id, metrics=values)

    def _make(
        self, name: str, run_id: str, model_id: str, tags: dict[str, str], inputs: Inputs
    ) -> VersionRef:
        version = self._client.create_model_version(
            name,
            source=f"models:/{model_id}",
            run_id=run_id,
            tags=tags | self._of_task(),
            model_id=model_id,  # a server refuses a source of whose model it is not told
        )
        ref = VersionRef(name=name, version=int(version.version))
        check_whole(self.stored(ref), tags, inputs)
        return ref

    def _name(self, name: str) -> None:
        try:
            self._client.create_registered_model(name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise

    def _record(self, ref: VersionRef, kind: str) -> str:
        version = self._version(ref)
        if version.tags.get(mlflow_tag("kind")) != kind:
            raise InputError(f"{ref} is no {kind.replace('-', ' ')}; name a version of one")
        return self._text(version, _RECORD)

    def _text(self, version: ModelVersion, name: str) -> str:
        """A file of the run that registered a version."""

        def read() -> str:
            # MLflow would look up the run of `runs:/` twice.
            files = self._client.get_run(version.run_id).info.artifact_uri
            return read_text(f"{files}/{name}")

        return self._ask(read)

    def _version(self, ref: VersionRef) -> ModelVersion:
        version = self._ask(lambda: self._find_version_or_none(ref))
        if version is None:
            others = self._ask(lambda: self._search(f"name = '{ref.name}'"))
            versions = [other.version for other in others]
            models = self._ask(self._client.search_registered_models)
            raise absent(ref, versions, [model.name for model in models])
        return version

    def _find_version_or_none(self, ref: VersionRef) -> ModelVersion | None:
        return none_if_missing(lambda: self._client.get_model_version(ref.name, str(ref.version)))

    def _search(self, *conditions: str) -> list[VersionRef]:
        search = self._client.search_model_versions
        versions: list[ModelVersion] = every(search, " and ".join(conditions))
        return sorted(read_each(versions, ref_of).records, key=lambda ref: (ref.name, ref.version))

    def _read(self, condition: str | None = None) -> ReadResult[Version]:
        search = self._client.search_model_versions
        versions: list[ModelVersion] = self._ask(lambda: every(search, condition))
        return read_each(filter(is_ours, versions), summary_of)
