"""Trainings in MLflow: one run for each, with its figures by step, also if it is resumed."""

from collections.abc import Sequence
from functools import partial

from mlflow.entities import Metric

from agentworld.lineage.metric_log import Point
from agentworld.lineage.mlflow_datasets import MlflowDataSets
from agentworld.lineage.model_version import mlflow_tag, same

_MOST_AT_ONCE = 1_000  # MLflow's own limit


class MlflowTrainings(MlflowDataSets):
    """Of one experiment."""

    def log_training(self, training: str, points: Sequence[Point]) -> None:
        """Adds figures to the run of a training, as `cpt/0123abc`; raises StoreError."""
        run_id = self._ask(lambda: self._run_of_training(training))
        metrics = [
            Metric(point.name, point.value, point.milliseconds, point.step) for point in points
        ]
        for start in range(0, len(metrics), _MOST_AT_ONCE):
            batch = metrics[start : start + _MOST_AT_ONCE]
            self._ask(partial(self._client.log_batch, run_id, batch))

    def end_training(self, training: str, status: str) -> None:
        """Says that a training is `FINISHED` or `FAILED`, where it has a run."""
        run_id = self._ask(lambda: self._run_of_training(training))
        self._ask(lambda: self._client.set_terminated(run_id, status))

    def _run_of_training(self, training: str) -> str:
        tags = {mlflow_tag("kind"): "training", mlflow_tag("training"): training}
        experiment = self._experiment()
        condition = " and ".join(same(tags, ("kind", "training")))
        runs = self._client.search_runs([experiment], condition, max_results=1)
        if runs:
            return str(runs[0].info.run_id)
        tags |= self._of_task("mlflow.parentRunId")
        run = self._client.create_run(experiment, tags=tags, run_name=training)
        return str(run.info.run_id)
