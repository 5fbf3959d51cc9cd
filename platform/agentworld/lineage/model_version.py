"""A model version of MLflow in our words, and the tags by which it is searched for."""

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, NamedTuple

from mlflow.entities import LoggedModel, Run
from mlflow.entities.model_registry import ModelVersion

from agentworld.errors import StoreError
from agentworld.lineage.base import WHOLE, StoredVersion, Version, VersionRef
from agentworld.lineage.inputs import Inputs, data_read, models_read
from agentworld.records.garbled import reading
from agentworld.records.statements.registration import Links

_PREFIX = "agentworld."
_STATES = {"READY": WHOLE, "active": "present"}
"""What is as it should be, from MLflow's words to ours."""
_PLAIN = re.compile(r"[\w:. -]*", re.ASCII)


class MlflowVersion(NamedTuple):
    """What an MLflow has of a version."""

    version: ModelVersion
    run: Run | None
    """That registered it, if it is there."""
    model: LoggedModel | None
    """That it was made of."""
    files: str
    """Where who asks for the version by its name finds them."""

    def with_files_of_run(self, record: str | None, signature: str | None) -> StoredVersion:
        """All of it, with what was logged as files of its run."""
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
    """In our word where all is well; else MLflow's own, or whatever somebody wrote there."""
    return _STATES.get(str(state), str(state))


def ref_of(version: ModelVersion) -> VersionRef:
    """Its name and number; raises EvidenceError where it can be no version of ours."""
    with _reading(version):
        return VersionRef(name=version.name, version=version.version)


def is_ours(version: ModelVersion) -> bool:
    """Whether it has a tag of ours; a server may have versions of others."""
    return any(str(name).startswith(_PREFIX) for name in version.tags)


def summary_of(version: ModelVersion) -> Version:
    """Without a look into its run; raises EvidenceError where it can be no version of ours."""
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


def check_whole(stored: StoredVersion, tags: Mapping[str, str], inputs: Inputs) -> None:
    """Raises StoreError where a version that was just made lacks a part of what was written."""
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


def logged_model_of(version: ModelVersion) -> str:
    """The id of the model that it was made of."""
    return str(version.source).removeprefix("models:/")


def mlflow_tag(name: str) -> str:
    """A tag of ours as MLflow has it."""
    return f"{_PREFIX}{name}"


def is_searchable(value: str) -> bool:
    """Whether a condition can have this value; whatever else is told of a run may be no word."""
    return _PLAIN.fullmatch(value) is not None


def where(tag: str, value: str) -> str:
    """The condition that a tag has this value."""
    return f"tags.`{mlflow_tag(tag)}` = '{value}'"


def same(tags: dict[str, str], names: tuple[str, ...]) -> list[str]:
    """Conditions for what has the same values of these tags."""
    return [where(name, tags[mlflow_tag(name)]) for name in names if mlflow_tag(name) in tags]
