"""The uses of a data set: the world models trained on it, their simulators, and their agents."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from agentworld.audit.questions.simulator import AgentOrigin, agents_of
from agentworld.audit.read.sources import Sources, manifest_of
from agentworld.errors import InputError, NotFound
from agentworld.lineage.base import Version
from agentworld.lineage.tags import tags_of
from agentworld.records.base import Digest, Record
from agentworld.records.checkpoint import WORLD_STAGES, Stage
from agentworld.records.garbled import reading
from agentworld.storage.receipts import finished_steps
from agentworld.storage.simulators import SimulatorStore


class Reader(Record):
    """A version of a world model, and its stages that were trained on the data."""

    world_model: str
    artifact: Digest
    stages: tuple[Stage, ...]
    base: str | None = None
    """The version that was trained on the data, if this one only started from its weights."""


class ServedReader(Record):
    """A simulator that serves such a version, and its agents."""

    simulator: Digest
    world_model: str
    agents: tuple[AgentOrigin, ...]


class DataSetAudit(Record):
    """The answer to: which models and agents used this data?"""

    data: Digest
    at: str | None
    """The time asked about; null is now."""
    world_models: tuple[Reader, ...]
    simulators: tuple[ServedReader, ...]
    """The simulators of this store."""


def audit_dataset(start: str, sources: Sources) -> DataSetAudit:
    """All uses of a data set, named by the start of its digest.

    Raises NotFound, or InputError if several digests match.
    """
    readers_by_data = data_sets(sources)
    data = _resolve(start, readers_by_data)
    readers = readers_by_data[data]
    return DataSetAudit(
        data=data,
        at=sources.moment,
        world_models=readers,
        simulators=tuple(_find_served(readers, sources)),
    )


def data_sets(sources: Sources) -> dict[Digest, tuple[Reader, ...]]:
    """Data sets that were prepared here or used by a world model, with the versions trained on them
    directly or through their base.
    """
    digests = [step.receipt.output for step in finished_steps(sources.store, "prepare")]
    readers_by_data: dict[Digest, dict[str, Reader]] = {data: {} for data in digests}
    versions = _versions(sources)
    by_artifact = {
        artifact: version for version in reversed(versions) for artifact in _artifacts_of(version)
    }
    for version in versions:
        for origin, artifact in _origins(version, by_artifact):
            by_stage = _until(artifact, origin, data_of(origin))
            for data in dict.fromkeys(by_stage.values()):
                stages = tuple(stage for stage in by_stage if by_stage[stage] == data)
                reader = Reader(
                    world_model=str(version.ref),
                    artifact=version.tags["artifact"],
                    stages=stages if origin is version else (),
                    base=None if origin is version else str(origin.ref),
                )
                readers_by_data.setdefault(data, {}).setdefault(reader.world_model, reader)
    return {data: tuple(readers.values()) for data, readers in readers_by_data.items()}


def _versions(sources: Sources) -> list[Version]:
    """The world models by their tags; signed ones with missing tags by their records. `audit
    verify` reports the garbled ones.
    """
    versions = (
        _restored(version, sources) if _lacks_tags(version) else version
        for version in sources.versions(kind="world-model")
    )
    return [version for version in versions if "artifact" in version.tags]


def _lacks_tags(version: Version) -> bool:
    stages = {name.partition(".")[0] for name in version.tags if "." in name}
    names = {f"{stage}.{name}" for stage in stages for name in ("artifact", "parents", "data")}
    return not stages or not names | {"artifact"} <= version.tags.keys()


def _restored(version: Version, sources: Sources) -> Version:
    if not sources.is_signed(version.ref):
        return version
    with reading(str(version.ref)):
        world_model = sources.registry.world_model(version.ref)
    return version.model_copy(update={"tags": tags_of(world_model)})


def _origins(
    version: Version, by_artifact: Mapping[Digest, Version]
) -> Iterator[tuple[Version, Digest]]:
    """A version with its weights, the version that it started from with those weights, and so
    on.
    """
    origin: Version | None = version
    artifact = version.tags["artifact"]
    visited = set[str]()
    while origin is not None and str(origin.ref) not in visited:
        yield origin, artifact
        visited.add(str(origin.ref))
        parents = [parent for parent in _parents_of(origin) if parent in by_artifact]
        origin = by_artifact[parents[0]] if parents else None
        artifact = parents[0] if parents else ""


def _artifacts_of(version: Version) -> Iterator[Digest]:
    """The weights of each of its stages."""
    for tag in (*(f"{stage}.artifact" for stage in WORLD_STAGES), "artifact"):
        if tag in version.tags:
            yield version.tags[tag]


def _until(
    artifact: Digest, version: Version, by_stage: Mapping[Stage, Digest]
) -> dict[Stage, Digest]:
    """The data of the stages up to the one with these weights."""
    makers = [stage for stage in WORLD_STAGES if version.tags.get(f"{stage}.artifact") == artifact]
    last = WORLD_STAGES.index(makers[0]) if makers else len(WORLD_STAGES)
    return {stage: by_stage[stage] for stage in WORLD_STAGES[: last + 1] if stage in by_stage}


def _parents_of(version: Version) -> list[Digest]:
    """The base models of its first stage, from its tags."""
    tags = version.tags
    first = next((stage for stage in WORLD_STAGES if f"{stage}.artifact" in tags), None)
    return tags.get(f"{first}.parents", "").split()


def data_of(version: Version) -> dict[Stage, Digest]:
    """The data of each stage of a version, from its tags."""
    digests = {stage: version.tags.get(f"{stage}.data") for stage in WORLD_STAGES}
    return {stage: data for stage, data in digests.items() if data}


def _resolve(start: str, digests: Collection[Digest]) -> Digest:
    """The digest that starts with `start`."""
    start = start if start.startswith("sha256:") else f"sha256:{start}"
    matches = sorted(digest for digest in digests if digest.startswith(start))
    if not matches:
        names = ", ".join(sorted(digests)) or "none yet; run `agentworld demo`"
        raise NotFound(f"no data set {start} was used or prepared here; data sets are {names}")
    if len(matches) > 1:
        raise InputError(f"{start} is the start of {', '.join(matches)}; give more characters")
    return matches[0]


def _find_served(readers: Sequence[Reader], sources: Sources) -> Iterator[ServedReader]:
    versions = {reader.artifact: reader.world_model for reader in reversed(readers)}
    for simulator in SimulatorStore(sources.store).digests():
        manifest = manifest_of(simulator, sources.store)  # `verify` reports a changed one
        if manifest and manifest.artifact in versions:
            yield ServedReader(
                simulator=simulator,
                world_model=versions[manifest.artifact],
                agents=agents_of(sources.runs_of_simulator(simulator).records, sources),
            )
