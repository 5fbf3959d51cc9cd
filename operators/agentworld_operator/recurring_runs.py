"""Recurring runs on a Kubeflow Pipelines server, made and listed by the pipelines' own code.

Ours are named NAMESPACE.SCHEDULE, which no name of a user can be, because of the dot; others are
left alone. Calls block. The server's client is imported by the first call, so an operator without a
server never imports it.
"""

from collections import defaultdict
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from agentworld.cluster.records.schedule import ScheduleSpec
from agentworld.errors import NotFound
from agentworld_operator.policy.schedule import matches_plan, recurring_run_name
from agentworld_pipelines.records import PipelineRun, Plan, Schedule, Version
from agentworld_pipelines.settings import ServerSettings

if TYPE_CHECKING:
    from agentworld_pipelines.connection import Connection

_SECONDS = 10.0
"""The timeout of a response; a stopping process waits for it."""


class RecurringRuns:
    """The recurring runs of one namespace; used by one thread at a time."""

    def __init__(
        self, namespace: str, settings: ServerSettings, placement: Path | None, image: str
    ) -> None:
        """`placement` is a file with the steps' places; an empty `image` is the pipelines' own."""
        self._namespace = namespace
        self._settings = settings
        self._placement = placement
        self._image = image
        self._versions: dict[tuple[str, str | None], Version] = {}

    @property
    def is_configured(self) -> bool:
        """Whether a server is configured."""
        return bool(self._settings.url)

    def name(self, schedule: str) -> str:
        """The server's name of a TrainingSchedule's recurring run."""
        return recurring_run_name(self._namespace, schedule)

    def all(self) -> dict[str, list[Schedule]]:
        """The recurring runs by the name of their TrainingSchedule, which may be deleted."""
        from agentworld_pipelines.schedule import schedules

        by_name = defaultdict(list)
        for schedule in schedules(self._connection):
            namespace, _, name = schedule.name.partition(".")
            if name and namespace == self._namespace:
                by_name[name].append(schedule)
        return dict(by_name)

    def ensure(self, name: str, spec: ScheduleSpec, current: list[Schedule]) -> Schedule:
        """Ensures exactly one enabled recurring run of this name and spec."""
        from agentworld_pipelines.compile import arguments_for
        from agentworld_pipelines.schedule import mark_of, schedule

        fields = {"recipe": spec.recipe, "store": spec.store, "simulator": spec.simulator or ""}
        arguments = arguments_for(spec.pipeline, fields)
        try:
            plan = Plan(
                name=self.name(name),
                cron=spec.cron,
                version=self._version(spec.pipeline, spec.queue),
                arguments=arguments,
            )
            return (
                current[0]
                if matches_plan(mark_of(plan), current)
                else schedule(self._connection, plan)
            )
        except NotFound:
            self._versions.clear()  # a reinstalled server needs them again
            raise

    def remove(self, name: str) -> None:
        """Deletes the recurring runs of this name; one with an active run is only disabled."""
        from agentworld_pipelines.schedule import unschedule

        unschedule(self._connection, self.name(name))

    def run(self, run_id: str) -> PipelineRun | None:
        """A run, or null."""
        from agentworld_pipelines.server import run_of

        try:
            return run_of(self._connection, run_id)
        except NotFound:
            return None

    @cached_property
    def _connection(self) -> "Connection":
        from agentworld_pipelines.connection import Connection

        return Connection(self._settings, answer_seconds=_SECONDS)

    def _version(self, pipeline: str, queue: str | None) -> Version:
        from agentworld_pipelines.compile import compile_pipeline
        from agentworld_pipelines.placement import Placement, load_placement
        from agentworld_pipelines.server import upload

        if (pipeline, queue) not in self._versions:
            placement = load_placement(self._placement) if self._placement else Placement()
            placement = placement.with_queue(queue) if queue else placement
            with TemporaryDirectory() as folder:
                path = Path(folder) / "pipeline.yaml"
                compile_pipeline(path, pipeline, placement, self._image)
                self._versions[pipeline, queue] = upload(self._connection, path)
        return self._versions[pipeline, queue]
