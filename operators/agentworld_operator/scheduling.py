"""TrainingSchedules at work: each is one recurring run, and its status says what came of it."""

import asyncio
from datetime import UTC, datetime

from pydantic import ValidationError

from agentworld.errors import AgentworldError
from agentworld.records.base import first_problem
from agentworld_operator.cluster import Cluster
from agentworld_operator.policy.conditions import timestamp
from agentworld_operator.policy.identity import Refused
from agentworld_operator.policy.schedule import (
    NOT_CONFIGURED,
    SUSPENDED,
    ScheduleState,
    ServerState,
    build_status,
    invalid,
    last_run,
    newest_run,
    refusal,
)
from agentworld_operator.recurring import RecurringRuns
from agentworld_operator.resources.schedule import LastRun, ScheduleSpec, ScheduleStatus
from agentworld_operator.status import write_status
from agentworld_operator.watched import Cache
from agentworld_operator.work import WorkQueue
from agentworld_pipelines.api_server import Object
from agentworld_pipelines.records import UNFINISHED, PipelineRun, Schedule

_KIND = "TrainingSchedule"
_SERVER = "Kubeflow Pipelines"
"""In the queue, between the names, of which none has a space: to ask for everything."""

# The server is asked by one thread at a time.
_WORKERS = 1


class Schedules:
    """All TrainingSchedules of the namespace. What it remembers can be lost: it asks again."""

    def __init__(
        self, cluster: Cluster, cache: Cache, runs: RecurringRuns, *, ask_seconds: float
    ) -> None:
        self._cluster = cluster
        self._cache = cache
        self._runs = runs
        self._ask_seconds = ask_seconds
        self._queue = WorkQueue(self._work, workers=_WORKERS)
        self._there: dict[str, list[Schedule]] | Refused | None = None
        """What the server told, or why it did not; null before it was asked."""
        self._newest: dict[str, PipelineRun] = {}

    async def run(self) -> None:
        """Works until it is cancelled."""
        self._queue.add(_SERVER)
        await self._queue.run()

    def changed(self, name: str) -> None:
        """One came, changed or went."""
        self._queue.add(name)

    async def _work(self, name: str) -> None:
        if name == _SERVER:
            await self._ask()
        else:
            await self.reconcile(name)

    async def _ask(self) -> None:
        """Once, and again after a while; a failure is tried again by the queue, ever later."""
        try:
            if not self._runs.is_configured:
                self._there = NOT_CONFIGURED
                return
            self._there = there = await asyncio.to_thread(self._runs.all)
            newest = ((name, newest_run(recurring_runs)) for name, recurring_runs in there.items())
            self._newest = {name: run for name, run in newest if run}
            asyncio.get_running_loop().call_later(self._ask_seconds, self._queue.add, _SERVER)
        except AgentworldError as error:
            self._there = refusal(error)
            raise
        finally:
            self._look_again()

    def _look_again(self) -> None:
        names = {each["metadata"]["name"] for each in self._cache.all(_KIND)}
        if isinstance(self._there, dict):
            names |= self._there.keys()
        for name in sorted(names):
            self._queue.add(name)

    async def reconcile(self, name: str) -> None:
        """One round for one of them; raises what a later round may mend."""
        if self._there is None:
            return
        schedule = self._cache.get(_KIND, name)
        if schedule is None or "deletionTimestamp" in schedule["metadata"]:
            await self._remove(name)
            return
        before = ScheduleStatus.model_validate(schedule.get("status") or {})
        now = timestamp(datetime.now(UTC))
        server, failed = None, None
        try:
            problem = await self._ensure_run(schedule)
            server = await self._observe(name, before.last_run)
        except AgentworldError as error:  # tried again, and told meanwhile
            problem, failed = refusal(error), error
        generation = schedule["metadata"]["generation"]
        after = build_status(ScheduleState(generation, before, server, problem), now)
        if after != before:
            change = _KIND, schedule, before, after, now
            stored_schedule = await asyncio.to_thread(write_status, self._cluster, *change)
            self._cache.put(_KIND, stored_schedule)
        if failed:
            raise failed

    async def _ensure_run(self, schedule: Object) -> Refused | None:
        """Why no recurring run of its spec is there; null where one is, or was just made."""
        if isinstance(self._there, Refused) or self._there is None:
            return self._there
        name = schedule["metadata"]["name"]
        try:
            spec = ScheduleSpec.model_validate(schedule["spec"])
        except ValidationError as error:
            return Refused("Invalid", f"spec.{first_problem(error)}")
        if spec.suspend:
            await self._remove(name)
            return SUSPENDED
        if problem := invalid(self._runs.name(name), spec):
            return problem
        there, self._there[name] = self._there.get(name, []), []  # nobody knows until it is done
        self._there[name] = [await asyncio.to_thread(self._runs.ensure, name, spec, there)]
        return None

    async def _remove(self, name: str) -> None:
        if isinstance(self._there, dict) and name in self._there:
            await asyncio.to_thread(self._runs.remove, name)
            del self._there[name]

    async def _observe(self, name: str, before: LastRun | None) -> ServerState | None:
        if not isinstance(self._there, dict):
            return None
        schedule = next(iter(self._there.get(name, ())), None)
        if name in self._newest:
            return ServerState(schedule, last_run(self._newest[name]))
        if before is None or before.state not in UNFINISHED:
            return ServerState(schedule, before)
        # The server does not tell of it any more: its recurring run is gone, or many are newer.
        run = await asyncio.to_thread(self._runs.run, before.id)
        return ServerState(schedule, last_run(run) if run else None)
