"""The models that a world model started from, and those that these started from in turn."""

from collections.abc import Iterator
from pathlib import Path

from agentworld.audit.read.sources import Sources
from agentworld.lineage.base import VersionRef, WorldModel
from agentworld.records.base import Digest, Record
from agentworld.records.checkpoint import WORLD_STAGES
from agentworld.storage.receipts import step_that_made


class BaseLink(Record):
    """A model that a world model started from."""

    artifact: Digest
    address: str | None
    """Where it was fetched from; null for a folder."""
    world_model: str | None
    """The version that has these weights as a stage; its own base follows."""
    data: Digest | None = None
    """What its stage of that version was trained on; null where these weights are of no version."""


def bases_of(
    version: VersionRef | None, world_model: WorldModel | None, sources: Sources
) -> tuple[tuple[BaseLink, ...], tuple[str, ...]]:
    """From one world model to the next, until a base is none that is registered here.

    And what breaks the chain: a version that comes a second time.
    """
    links, versions = list[BaseLink](), {version}
    while world_model:
        first, version, world_model = world_model.stages[0], None, None
        for artifact in first.parents:
            registered = (version.ref for version in sources.world_models_with(artifact))
            version, world_model = sources.first_world_model(registered)
            links.append(_base(artifact, first.base, version, world_model))
        if version in versions:
            return tuple(links), (f"the bases of {version} lead back to {version}",)
        versions.add(version)
    return tuple(links), ()


def _base(
    artifact: Digest, address: str | None, version: VersionRef | None, model: WorldModel | None
) -> BaseLink:
    return BaseLink(
        artifact=artifact,
        address=address,
        world_model=str(version) if version else None,
        data=_data_of(artifact, model) if model else None,
    )


def _data_of(artifact: Digest, model: WorldModel) -> Digest | None:
    """What the stage read that these weights are of."""
    stages = (stage for stage in model.stages if stage.artifact == artifact)
    return next(stages, model.stages[-1]).data


def unregistered_problems(bases: tuple[BaseLink, ...], store: Path) -> Iterator[str]:
    """Bases that are stages of this store: nothing signed says what they were trained on."""
    for base in bases:
        steps = (step_that_made(store, stage, base.artifact) for stage in WORLD_STAGES)
        if base.world_model is None and any(steps):
            yield (
                f"the base {base.artifact} was trained in this store and is no registered world"
                " model; register it, and the chain goes on to its data"
            )
