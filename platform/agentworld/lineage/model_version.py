"""A model version of MLflow in our words, and the tags by which it is searched for."""

from datetime import UTC, datetime
from typing import NamedTuple

from mlflow.entities import LoggedModel, Run
from mlflow.entities.model_registry import ModelVersion

from agentworld.lineage.base import StoredVersion, Version, VersionRef
from agentworld.lineage.inputs import data_read, models_read
from agentworld.records.step_statement import Links

_OURS = "agentworld."


class Kept(NamedTuple):
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
            version=at_a_glance(self.version),
            record=record,
            signature=signature,
            run=run.info.lifecycle_stage if run else "missing",
            model=model.status.value if model else "missing",
            links=Links(
                run=self.version.run_id or "",
                model=logged_model_of(self.version),
                inputs=models_read(run) if run else (),
            ),
            data=data_read(run) if run else (),
            places=(self.files, model.artifact_location) if model else (),
        )


def ref_of(version: ModelVersion) -> VersionRef:
    """Its name and number."""
    return VersionRef(name=version.name, version=int(version.version))


def is_ours(version: ModelVersion) -> bool:
    """Whether it has a tag of ours; a server may have versions of others."""
    return any(name.startswith(_OURS) for name in version.tags)


def at_a_glance(version: ModelVersion) -> Version:
    """Without a look into its run."""
    tags = {
        name.removeprefix(_OURS): value
        for name, value in version.tags.items()
        if name.startswith(_OURS)
    }
    registered = datetime.fromtimestamp(version.creation_timestamp / 1000, UTC)
    return Version(ref=ref_of(version), at=registered, tags=tags)


def logged_model_of(version: ModelVersion) -> str:
    """The id of the model that it was made of."""
    return str(version.source).removeprefix("models:/")


def spelled(name: str) -> str:
    """A tag of ours as MLflow has it."""
    return f"{_OURS}{name}"


def where(tag: str, value: str) -> str:
    """The condition that a tag has this value."""
    return f"tags.`{spelled(tag)}` = '{value}'"


def same(tags: dict[str, str], names: tuple[str, ...]) -> list[str]:
    """Conditions for what has the same values of these tags."""
    return [where(name, tags[spelled(name)]) for name in names if spelled(name) in tags]
