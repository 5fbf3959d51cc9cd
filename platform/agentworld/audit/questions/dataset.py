"""What a data set came into: the world models that read it, their simulators, and their agents."""

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
    """A version of a world model, and its stages that read the data."""

    world_model: str
    artifact: Digest
    stages: tuple[Stage, ...]
    base: str | None = None
    """The version that read the data, where this one only started from its weights."""


class ServedReader(Record):
    """A simulator that serves such a version, and the agents that it trained."""

    simulator: Digest
    world_model: str
    agents: tuple[AgentOrigin, ...]


class DataSetAudit(Record):
    """The answer to: where did this data go?"""

    data: Digest
    at: str | None
    """The moment of which was asked; null is now."""
    world_models: tuple[Reader, ...]
    simulators: tuple[ServedReader, ...]
    """Of this store."""


def audit_dataset(start: str, sources: Sources) -> DataSetAudit:
    """All that a data set, named by the start of its digest, came into.

    Raises NotFound, or InputError for the start of several.
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
    """What was prepared here or read by a world model, with those that read it, themselves or by a
    version that they started from.
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
    """The world models by their tags, those of which a step signed by their records where tags are
    missing. `audit verify` reports the garbled ones.
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
    """A version with its weights, the one that it started from with those weights, and so on."""
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
    """What the stages read until one made these weights."""
    makers = [stage for stage in WORLD_STAGES if version.tags.get(f"{stage}.artifact") == artifact]
    last = WORLD_STAGES.index(makers[0]) if makers else len(WORLD_STAGES)
    return {stage: by_stage[stage] for stage in WORLD_STAGES[: last + 1] if stage in by_stage}


def _parents_of(version: Version) -> list[Digest]:
    """What its first stage started from, as its tags tell."""
    tags = version.tags
    first = next((stage for stage in WORLD_STAGES if f"{stage}.artifact" in tags), None)
    return tags.get(f"{first}.parents", "").split()


def data_of(version: Version) -> dict[Stage, Digest]:
    """What each stage of a version read, as its tags tell."""
    digests = {stage: version.tags.get(f"{stage}.data") for stage in WORLD_STAGES}
    return {stage: data for stage, data in digests.items() if data}


def _resolve(start: str, digests: Collection[Digest]) -> Digest:
    """The one that starts so."""
    start = start if start.startswith("sha256:") else f"sha256:{start}"
    matches = sorted(digest for digest in digests if digest.startswith(start))
    if not matches:
        names = ", ".join(sorted(digests)) or "none yet; run `agentworld demo`"
        raise NotFound(f"no data set {start} was read or prepared here; data sets are {names}")
    if len(matches) > 1:
        raise InputError(f"{start} is the start of {', '.join(matches)}; write more of it")
    return matches[0]


def _find_served(readers: Sequence[Reader], sources: Sources) -> Iterator[ServedReader]:
    versions = {reader.artifact: reader.world_model for reader in reversed(readers)}
    for simulator in SimulatorStore(sources.store).digests():
        manifest = manifest_of(simulator, sources.store)  # one that was changed is told by `verify`
        if manifest and manifest.artifact in versions:
            yield ServedReader(
                simulator=simulator,
                world_model=versions[manifest.artifact],
                agents=agents_of(sources.runs_of_simulator(simulator).records, sources),
            )
