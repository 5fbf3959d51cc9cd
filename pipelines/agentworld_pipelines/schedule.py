"""Schedules: one recurring run of a server for each name, with one active run at a time.

A recurring run cannot be changed, so a changed plan needs a new one. It is created disabled,
enabled after the older one has been disabled, and only then the older one is deleted. So two of a
name are never enabled, and after a kill the plans in the recurring runs show the remaining work. A
recurring run owns its runs on the server, and deleting it deletes their pods. One with an active
run is therefore only disabled, and deleted by a later call after the run has ended.
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
"""One run at a time, and no catch-up of the times at which the server was down."""

_ENABLE = "ENABLE"
_DISABLE = "DISABLE"


def schedule(connection: Connection, plan: Plan) -> Schedule:
    """Makes one enabled recurring run of this plan the only one of its name."""
    cron, experiment = Cron.parse(plan.cron), ensure_experiment(connection)
    mark = mark_of(plan)
    current_schedules = _all(connection, experiment, plan.name)
    if not any(schedule.plan == mark for schedule in current_schedules):
        _create(connection, experiment, plan, cron)
        # Another process may have made one too; all keep the same one.
        current_schedules = _all(connection, experiment, plan.name)
    current = next((schedule for schedule in current_schedules if schedule.plan == mark), None)
    if current is None:
        raise NotFound(f"schedule {plan.name} was deleted while it was made; make it again")
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
    """Disables and deletes a schedule, and returns it; active runs continue.

    One with an active run is returned with that run, and is only deleted by a later call.
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
    """All our schedules by name, each with its last run if that is among the 100 newest."""
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
    """The recurring runs of a name, or all; enabled ones first, then by age."""
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
    """The digest of a plan in a recurring run's description; a server may fill in other fields."""
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
            with suppress(NotFound):  # another process deleted it
                connection.ask(disable, recurring_run_id=schedule.id)


def _delete(
    connection: Connection, experiment: str, schedules: list[Schedule]
) -> dict[str | None, PipelineRun]:
    """Deletes recurring runs; returns the active runs of those that are kept."""
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
