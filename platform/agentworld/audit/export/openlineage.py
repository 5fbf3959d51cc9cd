"""The same in OpenLineage's words: stages and agents' trainings as jobs, what they read and made
as data sets, each named by its digest.

Nobody kept when a stage was trained: its events bear the time at which it was registered. A move of
a name, a use and an erasure train nothing: they read no data set and make none, and are left out.
"""

import uuid
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from openlineage.client.event_v2 import (
    InputDataset,
    Job,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
)
from openlineage.client.facet_v2 import (
    DatasetFacet,
    dataset_type_dataset,
    dataset_version_dataset,
    job_type_job,
    tags_run,
)
from openlineage.client.serde import Serde

from agentworld.audit.export.rows import TrainedAgentRow, trained_agents
from agentworld.audit.read.sources import Sources
from agentworld.lineage.base import Version, VersionRef
from agentworld.records.base import Digest
from agentworld.records.checkpoint import Checkpoint

_NAMESPACE = "agentworld"
_PRODUCER = "urn:agentworld:audit"
_IDS = uuid.uuid5(uuid.NAMESPACE_URL, _PRODUCER)

_MODEL = ("MODEL", None)
_DATA = ("FILE", None)
_SIMULATOR = ("MODEL", "SIMULATOR")


class _Asset(NamedTuple):
    """What a job reads or makes."""

    digest: Digest
    kind: tuple[str, str | None]


class _Work(NamedTuple):
    """One run of a job."""

    job: str
    at: str
    output: _Asset
    read: tuple[_Asset, ...]
    tags: dict[str, str]


def events(sources: Sources) -> Iterator[str]:
    """JSON lines of run events: a START and a COMPLETE for each training, each training once."""
    run_ids = set()
    for work in _works(sources):
        run = str(uuid.uuid5(_IDS, f"{work.job} {work.output.digest} {work.tags.get('agent')}"))
        if run not in run_ids:
            run_ids.add(run)
            for state in (RunState.START, RunState.COMPLETE):
                yield Serde.to_json(_event(work, run, state))


def _works(sources: Sources) -> Iterator[_Work]:
    for world_model in sources.versions(kind="world-model"):
        for checkpoint in sources.registry.world_model(world_model.ref).stages:
            yield _of_stage(checkpoint, world_model)
    agents = list(trained_agents(sources))
    versions = {version.ref: version for version in sources.versions()}
    for row in agents:
        yield from _of_simulator(row, versions)
    for row in agents:
        checkpoint = sources.registry.agent(row.version).checkpoint
        yield _of_agent(row, checkpoint, versions[row.version])


def _of_stage(checkpoint: Checkpoint, version: Version) -> _Work:
    models = (*checkpoint.parents, *((checkpoint.reward_model,) if checkpoint.reward_model else ()))
    data = (_Asset(checkpoint.data, _DATA),) if checkpoint.data else ()
    corpora = (_Asset(corpus.content, _DATA) for corpus in checkpoint.corpora.values())
    read = (*(_Asset(model, _MODEL) for model in models), *data, *corpora)
    return _Work(
        checkpoint.stage, version.at.isoformat(), _Asset(checkpoint.artifact, _MODEL), read, {}
    )


def _of_simulator(row: TrainedAgentRow, versions: Mapping[VersionRef, Version]) -> Iterator[_Work]:
    """How a world model became the simulator that a run was served by."""
    if row.served and row.world_model and row.world_model_artifact:
        at = versions[row.world_model].at.isoformat()
        model = _Asset(row.world_model_artifact, _MODEL)
        yield _Work("simulate", at, _Asset(row.served.simulator, _SIMULATOR), (model,), {})


def _of_agent(row: TrainedAgentRow, checkpoint: Checkpoint, version: Version) -> _Work:
    run = row.served
    parents = tuple(_Asset(parent, _MODEL) for parent in checkpoint.parents)
    simulator = (_Asset(run.simulator, _SIMULATOR),) if run else ()
    tags = {"agent": str(row.version), "run": row.run}
    if row.edge:
        tags["grade"] = row.edge.grade
    if run:
        tags |= {"episodes": str(run.num_episodes), "steps": str(run.num_steps)}
    at = version.at.isoformat()
    return _Work(checkpoint.stage, at, _Asset(row.artifact, _MODEL), (*parents, *simulator), tags)


def _event(work: _Work, run: str, state: RunState) -> RunEvent:
    tags = [tags_run.TagsRunFacetFields(*tag, _NAMESPACE) for tag in sorted(work.tags.items())]
    kind = job_type_job.JobTypeJobFacet("BATCH", "AGENTWORLD", "TRAINING", producer=_PRODUCER)
    return RunEvent(
        eventType=state,
        eventTime=work.at,
        producer=_PRODUCER,
        run=Run(run, {"tags": tags_run.TagsRunFacet(tags, producer=_PRODUCER)} if tags else {}),
        job=Job(_NAMESPACE, work.job, {"jobType": kind}),
        inputs=[
            InputDataset(_NAMESPACE, asset.digest, facets=_facets(asset)) for asset in work.read
        ],
        outputs=[OutputDataset(_NAMESPACE, work.output.digest, facets=_facets(work.output))],
    )


def _facets(asset: _Asset) -> dict[str, DatasetFacet]:
    return {
        "datasetType": dataset_type_dataset.DatasetTypeDatasetFacet(
            *asset.kind, producer=_PRODUCER
        ),
        "version": dataset_version_dataset.DatasetVersionDatasetFacet(
            asset.digest, producer=_PRODUCER
        ),
    }
