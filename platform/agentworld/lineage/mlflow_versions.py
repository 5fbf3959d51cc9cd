"""Reads the versions of a registry on MLflow.

A version is a registered model version whose source is a logged model (all its files) and whose run
stores the record of its origin as `lineage.json`, with a signed statement. Tags hold digests, so
that a retried step finds its earlier registration, and an auditor finds the agents of a simulator;
the run's inputs repeat them in MLflow's form.
"""

import logging
import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import mlflow
from mlflow.entities import LoggedModel, Run
from mlflow.entities.model_registry import ModelVersion

from agentworld.errors import InputError
from agentworld.lineage.base import (
    AGENT_TAGS,
    WHOLE,
    Agent,
    StoredVersion,
    Version,
    VersionRef,
    WorldModel,
    absent,
    parse_record,
)
from agentworld.lineage.inputs import data_read, models_read
from agentworld.lineage.server import (
    PATIENCE_SECONDS,
    Server,
    download,
    every,
    none_if_missing,
    pages,
    read_text,
)
from agentworld.records.base import Digest
from agentworld.records.garbled import ReadResult, read_each, reading
from agentworld.records.statements.registration import Links

RECORD = "lineage.json"
SIGNATURE = "registration.dsse.json"
_OF_RUN = (RECORD, SIGNATURE)

_PREFIX = "agentworld."
_STATES = {"READY": WHOLE, "active": "present"}
"""The good states, from MLflow's words to ours."""
_PLAIN = re.compile(r"[\w:. -]*", re.ASCII)


class TaskRun(NamedTuple):
    """The run that Kubeflow's plugin opened for a task; only the task writes to it."""

    run: str
    experiment: str


class MlflowVersions:
    """Reads the registry at an MLflow address; a new one stores files in `artifacts`."""

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
        # MLflow prints a traceback for errors that we report in one sentence.
        logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
        self._ask = server.ask
        self._client = server.ask(lambda: mlflow.MlflowClient(uri, uri))
        self._artifacts = artifacts
        self._task = task

    def world_model(self, ref: VersionRef) -> WorldModel:
        """The world model registered under a name and a version."""
        return parse_record(WorldModel, ref, self._record(ref, "world-model"))

    def agent(self, ref: VersionRef) -> Agent:
        """The agent registered under a name and a version."""
        return parse_record(Agent, ref, self._record(ref, "agent"))

    def world_models_of(self, artifact: Digest) -> list[VersionRef]:
        """The versions with an artifact."""
        return [version.ref for version in self.versions(artifact=artifact, kind="world-model")]

    def agents_of(self, run: str) -> list[VersionRef]:
        """The versions that a run produced."""
        return [version.ref for version in self.versions(run=run, kind="agent")]

    def versions(self, **tags: str) -> list[Version]:
        """All versions with these values of tags, ordered by name and version.

        MLflow scans the tags of all versions for each condition, so it gets only one: the first,
        except the kind, which is the least selective.
        """
        conditions = sorted(tags.items(), key=lambda tag: tag[0] == "kind")
        first = next((where(*tag) for tag in conditions if is_searchable(tag[1])), None)
        versions = [
            version for version in self._read(first).records if tags.items() <= version.tags.items()
        ]
        return sorted(versions, key=lambda version: (version.ref.name, version.ref.version))

    def version(self, ref: VersionRef) -> Version:
        """One version."""
        return summary_of(self._version(ref))

    def stored(self, ref: VersionRef) -> StoredVersion:
        """All data of a version except its files."""
        version = self._version(ref)
        run: Run | None = None
        if version.run_id:  # MLflow rejects an empty id
            run = self._ask(lambda: none_if_missing(lambda: self._client.get_run(version.run_id)))
        files = self._ask(lambda: self._client.list_artifacts(version.run_id)) if run else []
        model, number = logged_model_of(version), str(ref.version)
        snapshot = _Snapshot(
            version=version,
            run=run,
            model=self._ask(lambda: none_if_missing(lambda: self._client.get_logged_model(model))),
            files=self._ask(lambda: self._client.get_model_version_download_uri(ref.name, number)),
        )
        names = {file.path for file in files}
        of_run = [self._text(version, name) if name in names else None for name in _OF_RUN]
        return snapshot.with_files_of_run(*of_run)

    def agents(self, limit: int) -> list[Version]:
        """At most `limit` registered agents with all AGENT_TAGS, the newest first."""
        order = ["creation_timestamp DESC", "version_number DESC"]
        search = partial(self._client.search_model_versions, max_results=limit, order_by=order)
        return self._ask(lambda: _first_agents(pages(search, where("kind", "agent")), limit))

    def fetch(self, ref: VersionRef, target: Path) -> None:
        """Copies the files of a version into a folder."""
        version = self._version(ref)
        model_id = logged_model_of(version)
        model = self._ask(lambda: none_if_missing(lambda: self._client.get_logged_model(model_id)))
        location = model.artifact_location if model else None
        self._ask(lambda: download(version.source, location, target))

    def _record(self, ref: VersionRef, kind: str) -> str:
        version = self._version(ref)
        if version.tags.get(mlflow_tag("kind")) != kind:
            raise InputError(f"{ref} is not a {kind.replace('-', ' ')}; name a version of one")
        return self._text(version, RECORD)

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


def _first_agents(parts: Iterable[list[ModelVersion]], limit: int) -> list[Version]:
    agents = list[Version]()
    for versions in parts:
        summaries = read_each(versions, summary_of).records
        agents += [version for version in summaries if version.tags.keys() >= AGENT_TAGS]
        if len(agents) >= limit:
            break
    return agents[:limit]


class _Snapshot(NamedTuple):
    """MLflow's data of a version."""

    version: ModelVersion
    run: Run | None
    """The run that registered it, if it exists."""
    model: LoggedModel | None
    """The model that it was made of."""
    files: str
    """The location of its files by its name."""

    def with_files_of_run(self, record: str | None, signature: str | None) -> StoredVersion:
        """All data, with the files of its run."""
        run, model = self.run, self.model
        return StoredVersion(
            version=summary_of(self.version),
            record=record,
            signature=signature,
            run=_state(run.info.lifecycle_stage) if run else "missing",
            status=_state(self.version.status),
            model=_state(model.status.value) if model else "missing",
            links=Links(
                run=self.version.run_id or "",
                model=logged_model_of(self.version),
                inputs=models_read(run) if run else (),
            ),
            data=data_read(run) if run else (),
            locations=(self.files, model.artifact_location) if model else (),
        )


def _state(state: object) -> Any:
    """Our word for a good state; any other state unchanged."""
    return _STATES.get(str(state), str(state))


def ref_of(version: ModelVersion) -> VersionRef:
    """Its name and number; raises EvidenceError if they are invalid."""
    with _reading(version):
        return VersionRef(name=version.name, version=version.version)


def is_ours(version: ModelVersion) -> bool:
    """Whether it has one of our tags; a server may have other users' versions."""
    return any(str(name).startswith(_PREFIX) for name in version.tags)


def summary_of(version: ModelVersion) -> Version:
    """A summary without reading its run; raises EvidenceError if it is invalid."""
    with _reading(version):
        tags = {
            name.removeprefix(_PREFIX): value
            for name, value in version.tags.items()
            if name.startswith(_PREFIX)
        }
        registered_at = datetime.fromtimestamp(version.creation_timestamp / 1000, UTC)
        return Version(ref=ref_of(version), at=registered_at, tags=tags)


def _reading(version: ModelVersion) -> AbstractContextManager[None]:
    return reading(f"the registry's version {version.version!r} of {version.name!r}")


def logged_model_of(version: ModelVersion) -> str:
    """The id of its logged model."""
    return str(version.source).removeprefix("models:/")


def mlflow_tag(name: str) -> str:
    """MLflow's name of one of our tags."""
    return f"{_PREFIX}{name}"


def is_searchable(value: str) -> bool:
    """Whether a search condition can contain this value."""
    return _PLAIN.fullmatch(value) is not None


def where(tag: str, value: str) -> str:
    """The search condition that a tag has this value."""
    return f"tags.`{mlflow_tag(tag)}` = '{value}'"


def same(tags: dict[str, str], names: tuple[str, ...]) -> list[str]:
    """Search conditions for the same values of these tags."""
    return [where(name, tags[mlflow_tag(name)]) for name in names if mlflow_tag(name) in tags]
