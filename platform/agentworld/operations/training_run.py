"""A training's figures by step: in its step's folder, and in the environment's MLflow."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agentworld.lineage.metric_log import MetricLog, Point
from agentworld.operations.registry import RegistrySettings, open_registry
from agentworld.recipes.environment import from_environment
from agentworld.recipes.ranks import Ranks
from agentworld.records.metrics import OnMetrics, ignore_metrics
from agentworld.storage.step_figures import StepFigures

if TYPE_CHECKING:
    from agentworld.lineage.mlflow import MlflowRegistry


@contextmanager
def training_run(store: Path, folder: Path) -> Iterator[OnMetrics]:
    """A callback that writes figures to a step's folder, and to its run in MLflow where
    MLFLOW_TRACKING_URI is set.

    It does nothing in all processes but the first.
    """
    if not from_environment(Ranks).is_first:
        yield ignore_metrics
        return
    figures = StepFigures(folder)
    if not from_environment(RegistrySettings).mlflow_tracking_uri:
        yield figures.add
        return
    with MetricLog(_Run(store, f"{folder.parent.name}/{folder.name}")) as log:

        def add(step: int, figures_of_step: Mapping[str, float]) -> None:
            figures.add(step, figures_of_step)
            log.add(step, figures_of_step)

        yield add


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
