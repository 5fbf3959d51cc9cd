"""A training's figures by step in the MLflow that the environment names."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agentworld.lineage.metric_log import MetricLog, Point
from agentworld.operations.registry import RegistrySettings, open_registry
from agentworld.recipes.environment import from_environment
from agentworld.recipes.ranks import Ranks
from agentworld.records.metrics import OnMetrics, ignore_metrics

if TYPE_CHECKING:
    from agentworld.lineage.mlflow import MlflowRegistry


@contextmanager
def training_run(store: Path, folder: Path) -> Iterator[OnMetrics]:
    """A callback that logs figures while the block runs, to the run of a step's folder.

    It does nothing where MLFLOW_TRACKING_URI is not set, and in all processes but the first.
    """
    is_first = from_environment(Ranks).is_first
    if not is_first or not from_environment(RegistrySettings).mlflow_tracking_uri:
        yield ignore_metrics
        return
    with MetricLog(_Run(store, f"{folder.parent.name}/{folder.name}")) as log:
        yield log.add


class _Run:
    """A kind of Writer."""

    def __init__(self, store: Path, training: str) -> None:
        self._store = store
        self._training = training

    def write(self, points: Sequence[Point]) -> None:
        self._registry.log_training(self._training, points)

    def end(self, *, failed: bool) -> None:
        self._registry.end_training(self._training, "FAILED" if failed else "FINISHED")

    @cached_property
    def _registry(self) -> "MlflowRegistry":
        # The thread that logs has patience of its own.
        return open_registry(self._store, max_patience_seconds=0)
