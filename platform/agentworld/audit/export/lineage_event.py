"""OpenLineage events: a training is a run of a job; its inputs and outputs are data sets.

A data set is named by its digest.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    RunFacet,
    dataset_type_dataset,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    tags_run,
)

from agentworld.records.base import Digest

_NAMESPACE = "agentworld"
PRODUCER = "urn:agentworld:audit"

MODEL = ("MODEL", None)
DATA = ("FILE", None)
SIMULATOR = ("MODEL", "SIMULATOR")


class Asset(NamedTuple):
    """A data set that a job reads or writes."""

    digest: Digest
    kind: tuple[str, str | None]


class JobRun(NamedTuple):
    """One run of a job."""

    run: str
    """A UUID."""
    job: str
    read: tuple[Asset, ...]
    tags: Mapping[str, str]


def run_event(
    job_run: JobRun, state: RunState, at: str, *, outputs: Iterable[Asset] = (), failure: str = ""
) -> RunEvent:
    """An event of a run at a time; `failure` is the error message of a failed run."""
    kind = job_type_job.JobTypeJobFacet("BATCH", "AGENTWORLD", "TRAINING", producer=PRODUCER)
    return RunEvent(
        eventType=state,
        eventTime=at,
        producer=PRODUCER,
        run=Run(job_run.run, _run_facets(job_run.tags, failure)),
        job=Job(_NAMESPACE, job_run.job, {"jobType": kind}),
        inputs=[
            InputDataset(_NAMESPACE, asset.digest, facets=_facets(asset)) for asset in job_run.read
        ],
        outputs=[
            OutputDataset(_NAMESPACE, asset.digest, facets=_facets(asset)) for asset in outputs
        ],
    )


def _run_facets(tags: Mapping[str, str], failure: str) -> dict[str, RunFacet]:
    facets: dict[str, RunFacet] = {}
    if tags:
        fields = [tags_run.TagsRunFacetFields(*tag, _NAMESPACE) for tag in sorted(tags.items())]
        facets["tags"] = tags_run.TagsRunFacet(fields, producer=PRODUCER)
    if failure:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            failure, "Python", producer=PRODUCER
        )
    return facets


def _facets(asset: Asset) -> dict[str, DatasetFacet]:
    return {
        "datasetType": dataset_type_dataset.DatasetTypeDatasetFacet(*asset.kind, producer=PRODUCER),
        "version": dataset_version_dataset.DatasetVersionDatasetFacet(
            asset.digest, producer=PRODUCER
        ),
    }
