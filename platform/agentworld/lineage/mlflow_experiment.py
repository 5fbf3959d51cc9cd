"""Runs in MLflow: one for each data set, and one for each training, also if it is resumed.

The run of a data set has it as an input with the same name and digest as the trainings that read
it, so that MLflow's search by a data set finds all of them. The profile of a data set is its
manifest, byte for byte. The run of a training has its metrics by step.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from mlflow.entities import Metric, Param, Run

from agentworld.lineage.data_input import prepared_input
from agentworld.lineage.inputs import dataset_input
from agentworld.lineage.metric_log import Point
from agentworld.lineage.mlflow_versions import MlflowVersions, mlflow_tag, same
from agentworld.records.dataset import DataSet
from agentworld.records.leaves import json_leaves

_EXPERIMENT = "agentworld"
_MANIFEST = "dataset.json"
_ENDED = "FINISHED"
_MOST_AT_ONCE = 1_000  # MLflow's own limit


class MlflowExperiment(MlflowVersions):
    """An experiment: a task's, or ours, which stores files in `artifacts` if it is new."""

    def register_dataset(self, dataset: DataSet) -> str:
        """The id of its run, which is created if it is missing."""
        tags = {
            mlflow_tag("kind"): "data-set",
            mlflow_tag("data"): dataset.digest,
            mlflow_tag("domains"): " ".join(dataset.domains),
        }
        name = f"data-set-{dataset.digest.removeprefix('sha256:')[:12]}"
        run = self._ask(lambda: self._find_or_create(name, tags, ("kind", "data")))
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

    def log_training(self, training: str, points: Sequence[Point]) -> None:
        """Adds metrics to the run of a training, such as `cpt/0123abc`; raises StoreError."""
        run_id = self._ask(lambda: self._run_of_training(training))
        metrics = [
            Metric(point.name, point.value, point.milliseconds, point.step) for point in points
        ]
        for start in range(0, len(metrics), _MOST_AT_ONCE):
            batch = metrics[start : start + _MOST_AT_ONCE]
            self._ask(partial(self._client.log_batch, run_id, batch))

    def end_training(self, training: str, status: str) -> None:
        """Sets the state of a training's run, if it has one, to `FINISHED` or `FAILED`."""
        run_id = self._ask(lambda: self._run_of_training(training))
        self._ask(lambda: self._client.set_terminated(run_id, status))

    def _run_of_training(self, training: str) -> str:
        tags = {mlflow_tag("kind"): "training", mlflow_tag("training"): training}
        return str(self._find_or_create(training, tags, ("kind", "training")).info.run_id)

    def _find_or_create(self, name: str, tags: dict[str, str], identity: tuple[str, ...]) -> Run:
        """The run with these values of the tags in `identity`."""
        experiment, condition = self._experiment(), " and ".join(same(tags, identity))
        runs = self._client.search_runs([experiment], condition, max_results=1)
        if runs:
            return runs[0]
        of_task = self._of_task("mlflow.parentRunId")
        return self._client.create_run(experiment, tags=tags | of_task, run_name=name)

    def _of_task(self, *tag_names: str) -> dict[str, str]:
        """Tags that name the task's run, if there is one."""
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
    """Metrics with names that MLflow accepts; other names are only in the manifest."""
    yield "trajectories", dataset.num_trajectories
    yield "trajectories.read", dataset.num_read
    for pool, file in dataset.pools.items():
        yield f"{pool}.samples", file.num_samples
        yield f"{pool}.turns", file.num_turns
        yield f"{pool}.targets", file.num_targets
