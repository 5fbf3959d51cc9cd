"""Data sets in MLflow: a run for each, which has the data set as an input of the same name and
digest as the trainings that read it, so that MLflow's search by a data set finds all of them.

The profile of a data set is its manifest, byte for byte as its digest names it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run

from agentworld.lineage.data_input import prepared_input
from agentworld.lineage.inputs import dataset_input
from agentworld.lineage.mlflow_aliases import MlflowAliases
from agentworld.lineage.model_version import mlflow_tag, same
from agentworld.lineage.server import Server
from agentworld.records.dataset import DataSet
from agentworld.records.leaves import json_leaves

_EXPERIMENT = "agentworld"
_MANIFEST = "dataset.json"
_ENDED = "FINISHED"


class TaskRun(NamedTuple):
    """The run that Kubeflow's plugin opened for a task; nobody else writes to it or ends it."""

    run: str
    experiment: str


class MlflowDataSets(MlflowAliases):
    """Of one experiment: a task's, or ours, which keeps files in `artifacts` where it is new."""

    def __init__(
        self, server: Server, client: MlflowClient, artifacts: Path | None, task: TaskRun | None
    ) -> None:
        super().__init__(server, client)
        self._artifacts = artifacts
        self._task = task

    def register_dataset(self, dataset: DataSet) -> str:
        """The id of its run, made now or before."""
        tags = {
            mlflow_tag("kind"): "data-set",
            mlflow_tag("data"): dataset.digest,
            mlflow_tag("domains"): " ".join(dataset.domains),
        }
        experiment = self._ask(self._experiment)
        run = self._ask(lambda: self._run_of_dataset(experiment, tags))
        run_id: str = run.info.run_id
        if run.info.status == _ENDED:
            return run_id
        profile = dataset.canonical.decode()
        inputs = [dataset_input(prepared_input(dataset.digest), profile)]
        self._ask(lambda: self._client.log_inputs(run_id, inputs))
        text = dataset.model_dump_json(indent=2)
        self._ask(lambda: self._client.log_text(run_id, text, _MANIFEST))
        metrics = [Metric(*metric, run.info.start_time, 0) for metric in _metrics(dataset)]
        params = [Param(name, str(value)) for name, value in json_leaves(dataset.recipe)]
        self._ask(lambda: self._client.log_batch(run_id, metrics, params))
        self._ask(lambda: self._client.set_terminated(run_id))
        return run_id

    def _run_of_dataset(self, experiment: str, tags: dict[str, str]) -> Run:
        condition = " and ".join(same(tags, ("kind", "data")))
        runs = self._client.search_runs([experiment], condition, max_results=1)
        if runs:
            return runs[0]
        name = f"data-set-{tags[mlflow_tag('data')].removeprefix('sha256:')[:12]}"
        of_task = self._of_task("mlflow.parentRunId")
        return self._client.create_run(experiment, tags=tags | of_task, run_name=name)

    def _of_task(self, *tag_names: str) -> dict[str, str]:
        """Tags that name the task's run, where there is one."""
        names = (mlflow_tag("kubeflow_run"), *tag_names)
        return dict.fromkeys(names, self._task.run) if self._task else {}

    def _experiment(self) -> str:
        if self._task:
            return self._task.experiment
        experiment = self._client.get_experiment_by_name(_EXPERIMENT)
        if experiment:
            return str(experiment.experiment_id)
        location = self._artifacts.resolve().as_uri() if self._artifacts else None
        return str(self._client.create_experiment(_EXPERIMENT, artifact_location=location))


def _metrics(dataset: DataSet) -> Iterator[tuple[str, float]]:
    """Of names that MLflow takes: words of recordings are in the manifest alone."""
    yield "trajectories", dataset.num_trajectories
    yield "trajectories.read", dataset.num_read
    for pool, file in dataset.pools.items():
        yield f"{pool}.samples", file.num_samples
        yield f"{pool}.turns", file.num_turns
        yield f"{pool}.targets", file.num_targets
