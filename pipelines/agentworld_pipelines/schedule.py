"""Schedules: one recurring run of a server for each name, which one run at a time comes from.

A recurring run cannot be changed, so that another plan is another recurring run. It is made
disabled, takes its turn when the older one has been disabled, and only then is that one deleted:
at no moment two of a name are enabled, and whoever is killed on the way finds by the plans that
are told there what is left to do.

On the server a recurring run owns its runs, and their pods are deleted with it. One whose run goes
on is therefore only disabled, and deleted by whoever comes when that run has ended.
"""

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from agentworld.errors import InputError, NotFound
from agentworld.records.base import Digest, digest_json
from agentworld_pipelines.connection import Connection, name_filter
from agentworld_pipelines.cron import Cron
from agentworld_pipelines.records import PipelineRun, Plan, Schedule
from agentworld_pipelines.server import (
    ensure_experiment,
    find_experiment,
    newest_runs,
    source,
    unfinished_runs,
)

_RUN_POLICY = {"max_concurrency": "1", "no_catchup": True}
"""One run at a time, and none for the times at which the server was down."""

_ENABLE = "ENABLE"
_DISABLE = "DISABLE"


def schedule(connection: Connection, plan: Plan) -> Schedule:
    """Makes one enabled recurring run of this plan the only one of its name."""
    cron, experiment = Cron.parse(plan.cron), ensure_experiment(connection)
    mark = mark_of(plan)
    current_schedules = _all(connection, experiment, plan.name)
    if not any(schedule.plan == mark for schedule in current_schedules):
        _create(connection, experiment, plan, cron)
        # Somebody else may have made one too: all who look from here on keep the same one.
        current_schedules = _all(connection, experiment, plan.name)
    current = next((schedule for schedule in current_schedules if schedule.plan == mark), None)
    if current is None:
        raise NotFound(f"schedule {plan.name} was taken away as it was made; make it again")
    others = [schedule for schedule in current_schedules if schedule is not current]
    _disable(connection, others)
    service = connection.client.recurring_runs
    if not current.enabled:
        connection.ask(
            service.recurring_run_service_enable_recurring_run, recurring_run_id=current.id
        )
    _delete(connection, experiment, others)
    get = service.recurring_run_service_get_recurring_run
    return _schedule(connection, connection.ask(get, recurring_run_id=current.id))


def unschedule(connection: Connection, name_or_id: str) -> list[Schedule]:
    """Takes a schedule away and returns what it was, disabled; its runs go on.

    One whose run goes on is told with it, and is there until this is asked for again.
    """
    experiment = find_experiment(connection)
    if experiment is None:
        return []
    matches = [
        schedule
        for schedule in _all(connection, experiment)
        if name_or_id in (schedule.name, schedule.id)
    ]
    _disable(connection, matches)
    runs = _delete(connection, experiment, matches)
    return [
        schedule.model_copy(
            update={"enabled": False, "next_run": None, "last_run": runs.get(schedule.id)}
        )
        for schedule in matches
    ]


def schedules(connection: Connection) -> list[Schedule]:
    """All of our experiment by name, each with the last of the newest runs that it started."""
    experiment = find_experiment(connection)
    if experiment is None:
        return []
    last: dict[str | None, PipelineRun] = {}
    for run in newest_runs(connection):
        last.setdefault(run.schedule_id, run)
    all_schedules = _all(connection, experiment)
    schedules_with_runs = (
        schedule.model_copy(update={"last_run": last.get(schedule.id)})
        for schedule in all_schedules
    )
    return sorted(schedules_with_runs, key=lambda schedule: schedule.name)


def _all(connection: Connection, experiment: str, name: str = "") -> list[Schedule]:
    """Of a name, or of every one: what is enabled first, then what is older."""
    recurring_runs = connection.ask_for_all(
        connection.client.recurring_runs.recurring_run_service_list_recurring_runs,
        "recurring_runs",
        experiment_id=experiment,
        **({"filter": name_filter(name)} if name else {}),
    )
    all_schedules = map(partial(_schedule, connection), recurring_runs)
    return sorted(
        all_schedules, key=lambda schedule: (not schedule.enabled, schedule.created, schedule.id)
    )


def _create(connection: Connection, experiment: str, plan: Plan, cron: Cron) -> None:
    types = connection.client.api_models
    body = types.V2beta1RecurringRun(
        experiment_id=experiment,
        namespace=connection.namespace,
        display_name=plan.name,
        description=mark_of(plan),
        mode=_DISABLE,
        trigger=types.V2beta1Trigger(
            cron_schedule=types.V2beta1CronSchedule(cron=cron.with_seconds)
        ),
        **_RUN_POLICY,
        **source(connection, plan.version, plan.arguments),
    )
    service = connection.client.recurring_runs
    connection.ask(service.recurring_run_service_create_recurring_run, recurring_run=body)


def mark_of(plan: Plan) -> Digest:
    """What a recurring run tells of itself; a server may fill in what it was not told."""
    return digest_json(
        {
            "cron": Cron.parse(plan.cron).expression,
            "version": plan.version.id,
            "arguments": plan.arguments,
            **_RUN_POLICY,
        }
    )


def _disable(connection: Connection, schedules: list[Schedule]) -> None:
    disable = connection.client.recurring_runs.recurring_run_service_disable_recurring_run
    for schedule in schedules:
        if schedule.enabled:
            with suppress(NotFound):  # somebody else took it away
                connection.ask(disable, recurring_run_id=schedule.id)


def _delete(
    connection: Connection, experiment: str, schedules: list[Schedule]
) -> dict[str | None, PipelineRun]:
    """Returns the runs that go on, by those that are kept for them."""
    if not schedules:
        return {}
    runs = {run.schedule_id: run for run in unfinished_runs(connection, experiment)}
    delete = connection.client.recurring_runs.recurring_run_service_delete_recurring_run
    for schedule in schedules:
        if schedule.id not in runs:
            with suppress(NotFound):
                connection.ask(delete, recurring_run_id=schedule.id)
    return runs


def _schedule(connection: Connection, recurring_run: Any) -> Schedule:
    cron = (
        recurring_run.trigger
        and recurring_run.trigger.cron_schedule
        and recurring_run.trigger.cron_schedule.cron
    )
    seconds, _, expression = (cron or "").partition(" ")
    enabled = recurring_run.mode == _ENABLE
    return connection.read(
        Schedule,
        id=recurring_run.recurring_run_id,
        name=recurring_run.display_name,
        cron=expression if seconds == "0" else cron or "",
        enabled=enabled,
        plan=recurring_run.description or "",
        created=recurring_run.created_at,
        next_run=_next(expression) if enabled and seconds == "0" else None,
    )


def _next(expression: str) -> datetime | None:
    try:
        return Cron.parse(expression).next_after(datetime.now(UTC))
    except InputError:
        return None
