"""The registry on MLflow 3: a local database file or a server; the calls are the same.

This module registers versions, and `mlflow_versions` reads them. A version's mutable data, its
aliases and a tag, are a mirror for users of MLflow; the ledger is authoritative.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlflow.entities import Metric, Run
from mlflow.entities.model_registry import RegisteredModel
from mlflow.exceptions import MlflowException

from agentworld.errors import StoreError
from agentworld.lineage.base import WHOLE, Agent, StoredVersion, VersionRef, WorldModel
from agentworld.lineage.inputs import Inputs
from agentworld.lineage.mlflow_experiment import MlflowExperiment
from agentworld.lineage.mlflow_versions import (
    RECORD,
    SIGNATURE,
    logged_model_of,
    mlflow_tag,
    same,
)
from agentworld.lineage.server import every
from agentworld.lineage.tags import tags_of
from agentworld.records.garbled import ReadResult, read_each, reading

_SAME_VERSION = ("artifact", "run", "edge")
_SAME_ATTEMPT = (*_SAME_VERSION, "report")


class MlflowRegistry(MlflowExperiment):
    """A Registry."""

    def register_world_model(
        self, name: str, entity: WorldModel, model: Path, *, signature: str | None = None
    ) -> VersionRef:
        """A new version, or the existing one of this artifact."""
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
        """A new version, or the existing one of this artifact of this run."""
        model_id = logged_model_of(self._version(world_model)) if world_model else None
        inputs = Inputs.of(entity.stages, model_id)
        return self._register(name, entity, model, entity.checkpoint.metrics, inputs, signature)

    def mark(self, ref: VersionRef, tag: str, value: str | None) -> None:
        """Sets or removes a tag of a version."""
        number, name = str(ref.version), mlflow_tag(tag)
        current = self._ask(lambda: self._client.get_model_version(ref.name, number)).tags.get(name)
        if value is None and current is not None:
            self._ask(lambda: self._client.delete_model_version_tag(ref.name, number, name))
        elif value is not None and value != current:
            self._ask(lambda: self._client.set_model_version_tag(ref.name, number, name, value))

    def set_alias(self, ref: VersionRef, alias: str) -> None:
        """Points the alias of this name at this version."""
        number = str(ref.version)
        self._ask(lambda: self._client.set_registered_model_alias(ref.name, alias, number))

    def remove_alias(self, name: str, alias: str) -> None:
        """Removes an alias of a name, if it exists."""
        if (name, alias) in self.aliases():
            self._ask(lambda: self._client.delete_registered_model_alias(name, alias))

    def aliases(self) -> dict[tuple[str, str], int]:
        """The versions of all names and aliases, including other users'."""
        return dict(self._aliases().records)

    def garbled(self) -> list[str]:
        """A sentence for each invalid version and alias with our tags."""
        return [*self._read().problems, *self._aliases().problems]

    def _aliases(self) -> ReadResult[tuple[tuple[str, str], int]]:
        search = self._client.search_registered_models
        models: list[RegisteredModel] = self._ask(lambda: every(search))
        rows = [(model.name, *alias) for model in models for alias in model.aliases.items()]
        return read_each(rows, _alias)

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
        self._ask(lambda: self._client.log_text(run_id, entity.model_dump_json(), RECORD))
        if signature:
            self._ask(lambda: self._client.log_text(run_id, signature, SIGNATURE))
        self._ask(lambda: self._client.log_inputs(run_id, *inputs))
        model_id = self._ask(lambda: self._logged_model(experiment, name, run_id, tags))
        self._ask(lambda: self._client.log_model_artifacts(model_id, str(model)))
        self._ask(lambda: self._log_metrics(run, model_id, metrics))
        self._ask(lambda: self._client.finalize_logged_model(model_id, "READY"))
        self._ask(lambda: self._client.set_terminated(run_id))
        self._ask(lambda: self._name(name))
        # Last, so that a visible version is complete.
        return self._ask(
            lambda: (
                self._find_registered(name, tags)
                or self._make(name, run_id, model_id, tags, inputs)
            )
        )

    def _find_registered(self, name: str, tags: dict[str, str]) -> VersionRef | None:
        return next(iter(self._search(f"name = '{name}'", *same(tags, _SAME_VERSION))), None)

    def _run(self, experiment: str, name: str, tags: dict[str, str]) -> Run:
        """A new run, or that of an earlier attempt without a version."""
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
        # With one timestamp, so that a retry adds none.
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
            model_id=model_id,  # a server requires the model of a source
        )
        ref = VersionRef(name=name, version=int(version.version))
        _check_whole(self.stored(ref), tags, inputs)
        return ref

    def _name(self, name: str) -> None:
        try:
            self._client.create_registered_model(name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise


def _check_whole(stored: StoredVersion, tags: Mapping[str, str], inputs: Inputs) -> None:
    """Raises StoreError if a new version lacks a part of what was written."""
    stored_tags = {mlflow_tag(name): value for name, value in stored.version.tags.items()}
    parts = {
        "a tag": tags.items() <= stored_tags.items(),
        "its run": stored.run == "present",
        "its record": stored.record is not None,
        "its logged model": stored.model == WHOLE,
        "a data set": len([data_set for data_set in stored.data if data_set.readers])
        >= len(inputs.datasets),
        "its input": len(stored.links.inputs) >= len(inputs.models),
    }
    for part, is_complete in parts.items():
        if not is_complete:
            raise StoreError(
                f"the registry made {stored.version.ref} and dropped {part} of it; remove the"
                " trigger or the rule of its database that drops rows, and delete that version",
                retryable=False,
            )


def _alias(row: tuple[str, str, str]) -> tuple[tuple[str, str], int]:
    name, alias, version = row
    with reading(f"the registry's alias {alias!r} of {name!r}"):
        return (name, alias), int(version)
