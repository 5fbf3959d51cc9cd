"""A model version of MLflow in our words, and the tags by which it is searched for."""

from datetime import UTC, datetime

from mlflow.entities.model_registry import ModelVersion

from agentworld.lineage.base import Version, VersionRef

_OURS = "agentworld."


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
