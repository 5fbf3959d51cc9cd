"""Decides the status of a TrainingSchedule by the server's state."""

from collections.abc import Sequence
from typing import NamedTuple

from agentworld.cluster.records.schedule import LastRun, ScheduleSpec, ScheduleStatus
from agentworld.errors import AgentworldError, InputError, PipelineError
from agentworld_operator.policy.conditions import ConditionState, conditions
from agentworld_operator.policy.problem import Problem
from agentworld_operator.timestamps import to_text
from agentworld_pipelines.cron import Cron
from agentworld_pipelines.records import LONGEST_NAME, PipelineRun, Schedule

SUSPENDED = Problem("Suspended", "no run is started while spec.suspend is true")
NOT_CONFIGURED = Problem(
    "NotConfigured",
    "the operator knows no Kubeflow Pipelines server; name one in the chart's value pipelines.url",
)

_FAILURE_LETTERS = 500


class ServerState(NamedTuple):
    """The server's state of one TrainingSchedule."""

    schedule: Schedule | None
    last: LastRun | None


def recurring_run_name(namespace: str, schedule: str) -> str:
    """The name of a TrainingSchedule's recurring run on the server."""
    return f"{namespace}.{schedule}"


def invalid(name: str, spec: ScheduleSpec) -> Problem | None:
    """Why a recurring run of this name and spec is invalid; null if it is valid."""
    if len(name) > LONGEST_NAME:
        return Problem(
            "Invalid",
            f"{name} has more than {LONGEST_NAME} letters; give the TrainingSchedule a shorter"
            " name",
        )
    try:
        Cron.parse(spec.cron)
    except InputError as error:
        return Problem("Invalid", str(error))
    return None


def matches_plan(mark: str, schedules: Sequence[Schedule]) -> bool:
    """Whether there is exactly one recurring run, and it is enabled and has this plan."""
    return [(schedule.enabled, schedule.plan) for schedule in schedules] == [(True, mark)]


def newest_run(schedules: Sequence[Schedule]) -> PipelineRun | None:
    """The newest run of all recurring runs of a name; a replaced one exists until its run ends."""
    runs = [schedule.last_run for schedule in schedules if schedule.last_run]
    return max(runs, key=lambda run: run.started, default=None)


def refusal_of(error: AgentworldError) -> Problem:
    """The problem of a failed request, for the author of a TrainingSchedule."""
    reason = "Unreachable" if isinstance(error, PipelineError) else "Refused"
    return Problem(reason, str(error))


def last_run(run: PipelineRun) -> LastRun:
    """A run in the form of a status."""
    finished = to_text(run.finished) if run.finished else None
    return LastRun(
        id=run.id,
        state=run.state,
        started=to_text(run.started),
        finished=finished,
        failure=run.failure[:_FAILURE_LETTERS] or None,
    )


class ScheduleState(NamedTuple):
    """The state of a TrainingSchedule."""

    generation: int
    status: ScheduleStatus
    """The last reported status."""
    server: ServerState | None
    """Null if it is unknown: the last status stays."""
    problem: Problem | None


def build_status(current: ScheduleState, now: str) -> ScheduleStatus:
    """The new status; equal to the last one if nothing changed."""
    before = current.status
    run_id, last, due = before.recurring_run, before.last_run, before.next_run
    if current.server:
        schedule, last = current.server
        run_id = schedule.id if schedule else None
        due = to_text(schedule.next_run) if schedule and schedule.next_run else None
    states = [_scheduled_condition(current.problem), _degraded_condition(last)]
    return ScheduleStatus(
        observed_generation=current.generation,
        recurring_run=run_id,
        last_run=last,
        next_run=due,
        conditions=conditions(before.conditions, states, current.generation, now),
    )


def _scheduled_condition(problem: Problem | None) -> ConditionState:
    if problem:
        return ConditionState("Scheduled", "False", *problem)
    return ConditionState("Scheduled", "True", "AsWanted", "Kubeflow starts it, one run at a time")


def _degraded_condition(last: LastRun | None) -> ConditionState:
    if last and last.state == "FAILED":
        failure = last.failure or "Kubeflow gives no reason"
        message = f"run {last.id} failed: {failure}; look at its page, or at the store's history"
        return ConditionState("Degraded", "True", "RunFailed", message)
    return ConditionState("Degraded", "False", "AsWanted")
