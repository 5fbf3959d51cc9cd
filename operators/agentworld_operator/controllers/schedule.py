"""Reconciles TrainingSchedules: one recurring run for each, and a status with its state."""

import asyncio
import logging
from collections.abc import Iterable

from pydantic import ValidationError

from agentworld.cluster.api_resources import Object
from agentworld.cluster.records.schedule import LastRun, ScheduleSpec, ScheduleStatus
from agentworld.errors import AgentworldError
from agentworld.records.base import first_problem
from agentworld_operator.cache import Cache
from agentworld_operator.controllers.controller import Outcome
from agentworld_operator.policy.problem import Problem
from agentworld_operator.policy.schedule import (
    NOT_CONFIGURED,
    SUSPENDED,
    ScheduleState,
    ServerState,
    build_status,
    invalid,
    last_run,
    newest_run,
    refusal_of,
)
from agentworld_operator.recurring_runs import RecurringRuns
from agentworld_pipelines.records import UNFINISHED, PipelineRun, Schedule

_log = logging.getLogger(__name__)


class ScheduleReconciler:
    """Keeps one recurring run for each TrainingSchedule on a Kubeflow Pipelines server."""

    kind = "TrainingSchedule"
    status_type = ScheduleStatus

    def __init__(self, cache: Cache, runs: RecurringRuns) -> None:
        self._cache = cache
        self._runs = runs
        self._server = asyncio.Lock()
        """Only one task at a time may talk to the server, so that none sees a partial result."""
        self._recurring_runs: dict[str, list[Schedule]] | Problem | None = None
        """The server's schedules by name, or why they are unknown; null until it was asked."""
        self._newest: dict[str, PipelineRun] = {}

    def affected_names(self, kind: str, resource: Object) -> Iterable[str]:
        """A TrainingSchedule itself."""
        return [resource["metadata"]["name"]] if kind == self.kind else []

    async def ask_server(self) -> list[str]:
        """Reads all recurring runs of the server; returns the names to reconcile."""
        async with self._server:
            self._recurring_runs = await self._all_recurring_runs()
        names = {schedule["metadata"]["name"] for schedule in self._cache.all(self.kind)}
        if isinstance(self._recurring_runs, dict):
            names |= self._recurring_runs.keys()
        return sorted(names)

    async def _all_recurring_runs(self) -> dict[str, list[Schedule]] | Problem:
        if not self._runs.is_configured:
            return NOT_CONFIGURED
        try:
            by_name = await asyncio.to_thread(self._runs.all)
        except AgentworldError as error:
            _log.warning("Kubeflow Pipelines: %s", error)
            return refusal_of(error)
        newest = ((name, newest_run(runs)) for name, runs in by_name.items())
        self._newest = {name: run for name, run in newest if run}
        return by_name

    async def reconcile(
        self, schedule: Object, before: ScheduleStatus, now: str
    ) -> Outcome[ScheduleStatus]:
        """Ensures exactly one recurring run of its name, or reports why there is none."""
        async with self._server:
            if self._recurring_runs is None:
                return Outcome()
            server, problem, failure = None, None, None
            try:
                problem = await self._ensure_run(schedule)
                server = await self._observe(schedule["metadata"]["name"], before.last_run)
            except AgentworldError as error:
                problem, failure = refusal_of(error), error
        generation = schedule["metadata"]["generation"]
        return Outcome(
            build_status(ScheduleState(generation, before, server, problem), now), failure
        )

    async def clean_up(self, name: str) -> Outcome[ScheduleStatus]:
        """Deletes its recurring run."""
        async with self._server:
            await self._remove(name)
        return Outcome()

    async def _ensure_run(self, schedule: Object) -> Problem | None:
        """Makes its recurring run, if it is missing; returns why there is none, or null."""
        if not isinstance(self._recurring_runs, dict):
            return self._recurring_runs
        name = schedule["metadata"]["name"]
        try:
            spec = ScheduleSpec.model_validate(schedule["spec"])
        except ValidationError as error:
            return Problem("Invalid", f"spec.{first_problem(error)}")
        if spec.suspend:
            await self._remove(name)
            return SUSPENDED
        if problem := invalid(self._runs.name(name), spec):
            return problem
        current = self._recurring_runs.get(name, [])
        self._recurring_runs[name] = []  # unknown until it is done
        run = await asyncio.to_thread(self._runs.ensure, name, spec, current)
        self._recurring_runs[name] = [run]
        return None

    async def _remove(self, name: str) -> None:
        if isinstance(self._recurring_runs, dict) and name in self._recurring_runs:
            await asyncio.to_thread(self._runs.remove, name)
            del self._recurring_runs[name]

    async def _observe(self, name: str, before: LastRun | None) -> ServerState | None:
        if not isinstance(self._recurring_runs, dict):
            return None
        schedule = next(iter(self._recurring_runs.get(name, ())), None)
        if name in self._newest:
            return ServerState(schedule, last_run(self._newest[name]))
        if before is None or before.state not in UNFINISHED:
            return ServerState(schedule, before)
        # The server no longer lists the run: its recurring run was deleted, or many are newer.
        run = await asyncio.to_thread(self._runs.run, before.id)
        return ServerState(schedule, last_run(run) if run else None)
