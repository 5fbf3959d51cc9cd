"""Exports to OpenLineage: stages and agents' trainings as jobs, their inputs and outputs as data
sets, each named by its digest.

The time of a stage's training is not recorded: its events have the time of its registration. Alias
moves, uses and erasures read and write no data set, and are left out.
"""

import uuid
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from openlineage.client.event_v2 import RunState
from openlineage.client.serde import Serde

from agentworld.audit.export.lineage_event import (
    DATA,
    MODEL,
    PRODUCER,
    SIMULATOR,
    Asset,
    JobRun,
    run_event,
)
from agentworld.audit.export.rows import TrainedAgentRow, trained_agents
from agentworld.audit.read.sources import Sources
from agentworld.lineage.base import Version, VersionRef
from agentworld.records.checkpoint import Checkpoint

_IDS = uuid.uuid5(uuid.NAMESPACE_URL, PRODUCER)


class _Work(NamedTuple):
    """One run of a job."""

    job: str
    at: str
    output: Asset
    read: tuple[Asset, ...]
    tags: dict[str, str]


def events(sources: Sources) -> Iterator[str]:
    """Run events as JSON lines: a START and a COMPLETE for each training, each training once."""
    run_ids = set()
    for work in _works(sources):
        run = str(uuid.uuid5(_IDS, f"{work.job} {work.output.digest} {work.tags.get('agent')}"))
        if run not in run_ids:
            run_ids.add(run)
            job_run = JobRun(run, work.job, work.read, work.tags)
            for state in (RunState.START, RunState.COMPLETE):
                yield Serde.to_json(run_event(job_run, state, work.at, outputs=[work.output]))


def _works(sources: Sources) -> Iterator[_Work]:
    versions = {version.ref: version for version in sources.versions()}
    refs = [version.ref for version in sources.versions(kind="world-model")]
    for ref, world_model in sources.read_each(refs, sources.registry.world_model):
        for checkpoint in world_model.stages:
            yield _of_stage(checkpoint, versions[ref])
    agents = list(trained_agents(sources))
    for row in agents:
        yield from _of_simulator(row, versions)
    for row in agents:
        checkpoint = sources.registry.agent(row.version).checkpoint
        yield _of_agent(row, checkpoint, versions[row.version])


def _of_stage(checkpoint: Checkpoint, version: Version) -> _Work:
    models = (*checkpoint.parents, *((checkpoint.reward_model,) if checkpoint.reward_model else ()))
    data = (Asset(checkpoint.data, DATA),) if checkpoint.data else ()
    corpora = (Asset(corpus.content, DATA) for corpus in checkpoint.corpora.values())
    read = (*(Asset(model, MODEL) for model in models), *data, *corpora)
    return _Work(
        checkpoint.stage, version.at.isoformat(), Asset(checkpoint.artifact, MODEL), read, {}
    )


def _of_simulator(row: TrainedAgentRow, versions: Mapping[VersionRef, Version]) -> Iterator[_Work]:
    """The job that turned a world model into the simulator of a run."""
    if row.served and row.world_model and row.world_model_artifact:
        at = versions[row.world_model].at.isoformat()
        model = Asset(row.world_model_artifact, MODEL)
        yield _Work("simulate", at, Asset(row.served.simulator, SIMULATOR), (model,), {})


def _of_agent(row: TrainedAgentRow, checkpoint: Checkpoint, version: Version) -> _Work:
    run = row.served
    parents = tuple(Asset(parent, MODEL) for parent in checkpoint.parents)
    simulator = (Asset(run.simulator, SIMULATOR),) if run else ()
    tags = {"agent": str(row.version), "run": row.run}
    if row.edge:
        tags["grade"] = row.edge.grade
    if run:
        tags |= {"episodes": str(run.num_episodes), "steps": str(run.num_steps)}
    at = version.at.isoformat()
    return _Work(checkpoint.stage, at, Asset(row.artifact, MODEL), (*parents, *simulator), tags)
