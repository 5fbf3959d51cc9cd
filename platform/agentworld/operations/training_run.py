"""Records a training's figures by step: in its folder, on its page, in MLflow, and as events."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agentworld.lineage.metric_log import MetricLog, Point
from agentworld.operations.lineage_events import lineage_events
from agentworld.operations.registry import RegistrySettings, open_registry
from agentworld.operations.stage_page import stage_page
from agentworld.recipes.environment import from_environment
from agentworld.recipes.ranks import Ranks
from agentworld.records.base import Digest
from agentworld.records.metrics import OnMetrics, ignore_metrics
from agentworld.storage.step_figures import StepFigures

if TYPE_CHECKING:
    from agentworld.lineage.mlflow import MlflowRegistry
    from agentworld.lineage.system_metrics import SystemMetrics


@contextmanager
def training_run(store: Path, folder: Path, inputs: Mapping[str, Digest]) -> Iterator[OnMetrics]:
    """A callback that writes figures to a step's folder and its page; to MLflow if
    MLFLOW_TRACKING_URI is set; and to OpenLineage if OPENLINEAGE_URL is set. It does nothing in all
    processes except the first.
    """
    if not from_environment(Ranks).is_first:
        yield ignore_metrics
        return
    with ExitStack() as stack:
        takers = [
            StepFigures(folder).add,
            stack.enter_context(stage_page(store, folder)),
            stack.enter_context(lineage_events(folder, inputs)),
        ]
        if from_environment(RegistrySettings).mlflow_tracking_uri:
            run = _Run(store, f"{folder.parent.name}/{folder.name}")
            takers.append(stack.enter_context(MetricLog(run)).add)

        def add(step: int, figures: Mapping[str, float]) -> None:
            for take in takers:
                take(step, figures)

        yield add


class _Run:
    """A Writer."""

    def __init__(self, store: Path, training: str) -> None:
        self._store = store
        self._training = training

    def write(self, points: Sequence[Point]) -> None:
        self._registry.log_training(self._training, [*points, *self._load(points[-1])])

    def end(self, *, failed: bool) -> None:
        self._registry.end_training(self._training, "FAILED" if failed else "FINISHED")

    def _load(self, last: Point) -> list[Point]:
        """The machine's load since the last measurement, at the step of the last point."""
        load = self._system_metrics.measure().items()
        return [last._replace(name=name, value=value) for name, value in load]

    @cached_property
    def _system_metrics(self) -> "SystemMetrics":
        from agentworld.lineage.system_metrics import SystemMetrics

        return SystemMetrics()

    @cached_property
    def _registry(self) -> "MlflowRegistry":
        # The logging thread retries by itself.
        return open_registry(self._store, max_patience_seconds=0)
