from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.cluster.records.schedule import LastRun, ScheduleSpec, ScheduleStatus
from agentworld.errors import AccessError, Conflict, InputError, PipelineError
from agentworld_operator.policy.problem import Problem
from agentworld_operator.policy.schedule import (
    NOT_CONFIGURED,
    SUSPENDED,
    ScheduleState,
    ServerState,
    build_status,
    invalid,
    last_run,
    matches_plan,
    newest_run,
    refusal_of,
)
from agentworld_pipelines.records import PipelineRun, Schedule
from make.simulator import schedule

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
EMPTY_STATUS = ScheduleStatus()
MOMENT = datetime(2026, 1, 2, 3, tzinfo=UTC)


def recurring_run(plan="wanted", *, enabled=True, **fields) -> Schedule:
    defaults = {"id": "r-1", "name": "worlds.nightly", "cron": "0 3 * * *", "next_run": MOMENT}
    return Schedule(plan=plan, enabled=enabled, created=MOMENT, **defaults | fields)


def pipeline_run(state="SUCCEEDED", **fields) -> PipelineRun:
    defaults = {"id": "run-1", "name": "nightly", "finished": MOMENT + timedelta(hours=1)}
    defaults |= {"started": MOMENT, "schedule_id": "r-1", "failure": "", "url": "http://kfp"}
    return PipelineRun(state=state, **defaults | fields)


def spec(**fields) -> ScheduleSpec:
    return ScheduleSpec.model_validate(schedule(**fields)["spec"])


def status_of(server_state=None, problem=None, before=EMPTY_STATUS, now=NOW):
    return build_status(ScheduleState(1, before, server_state, problem), now)


def conditions(status):
    return {condition.type: (condition.status, condition.reason) for condition in status.conditions}


@pytest.mark.parametrize(
    ("recurring_runs", "is_match"),
    [
        ([], False),
        ([recurring_run()], True),
        ([recurring_run(enabled=False)], False),
        ([recurring_run("older")], False),
        ([recurring_run(), recurring_run("older", enabled=False)], False),
    ],
    ids=["none", "this", "disabled", "another", "two"],
)
def test_exactly_one_enabled_recurring_run_of_the_plan_matches_the_plan(recurring_runs, is_match):
    assert matches_plan("wanted", recurring_runs) is is_match


def test_the_newest_run_is_chosen_among_all_recurring_runs_of_a_name():
    older, newer = (
        pipeline_run("RUNNING", id="run-0"),
        pipeline_run(started=MOMENT + timedelta(minutes=1)),
    )
    recurring_runs = [
        recurring_run(),
        recurring_run("b", last_run=newer),
        recurring_run("a", last_run=older),
    ]
    assert newest_run(recurring_runs) == newer
    assert newest_run(recurring_runs[:1]) is None


@pytest.mark.parametrize("cron", ["0 3 * *", "60 3 * * *", "0 0 30 2 *", "@daily"])
def test_an_invalid_cron_is_reported_with_its_text(cron):
    problem = invalid("worlds.nightly", spec(cron=cron))
    assert problem.reason == "Invalid"
    assert repr(cron) in problem.message


def test_a_schedule_name_too_long_for_the_server_is_refused():
    assert invalid("w." + "x" * 126, spec()) is None
    assert "give the TrainingSchedule a shorter name" in invalid("w." + "x" * 127, spec()).message


@pytest.mark.parametrize("store", ["demo-output", "", "./store"])
def test_a_store_that_pods_cannot_reach_is_refused(store):
    with pytest.raises(ValueError, match=r"store"):
        spec(store=store)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PipelineError("down", retryable=True), "Unreachable"),
        (AccessError("nobody"), "Refused"),
        (InputError("no such parameter"), "Refused"),
        (Conflict("taken"), "Refused"),
    ],
)
def test_a_failure_is_reported_as_unreachable_or_refused(error, reason):
    assert refusal_of(error) == (reason, str(error))


def test_the_status_contains_the_recurring_run_and_its_next_time():
    status = status_of(ServerState(recurring_run(), None))
    assert (status.recurring_run, status.last_run) == ("r-1", None)
    assert status.next_run == "2026-01-02T03:00:00Z"
    assert conditions(status) == {
        "Scheduled": ("True", "AsWanted"),
        "Degraded": ("False", "AsWanted"),
    }


def test_a_failed_run_degrades_the_schedule_until_the_next_run():
    failed = status_of(ServerState(recurring_run(), last_run(pipeline_run("FAILED"))))
    assert conditions(failed)["Degraded"] == ("True", "RunFailed")
    assert "run-1" in failed.condition("Degraded").message
    recovered = status_of(
        ServerState(recurring_run(), last_run(pipeline_run("RUNNING", finished=None))),
        before=failed,
    )
    assert conditions(recovered)["Degraded"] == ("False", "AsWanted")


def test_run_times_are_written_in_utc():
    local_time = MOMENT.astimezone(timezone(timedelta(hours=5)))
    assert last_run(pipeline_run(started=local_time, finished=None)) == LastRun(
        id="run-1", state="SUCCEEDED", started="2026-01-02T03:00:00Z"
    )


def test_a_suspended_schedule_has_no_recurring_run_and_keeps_its_last_run():
    last = last_run(pipeline_run())
    status = status_of(ServerState(None, last), SUSPENDED)
    assert (status.recurring_run, status.next_run, status.last_run) == (None, None, last)
    assert conditions(status)["Scheduled"] == ("False", "Suspended")


PROBLEMS = st.sampled_from([None, SUSPENDED, NOT_CONFIGURED, Problem("Unreachable", "down")])
RUNS = st.none() | st.sampled_from(["RUNNING", "FAILED"]).map(
    lambda state: last_run(pipeline_run(state))
)
SERVER_STATES = st.none() | st.builds(ServerState, st.none() | st.just(recurring_run()), RUNS)
ROUNDS = st.lists(st.tuples(SERVER_STATES, PROBLEMS), min_size=1)


@given(ROUNDS)
def test_an_equal_state_keeps_the_status_and_an_unknown_state_keeps_the_runs(rounds):
    before = EMPTY_STATUS
    for server_state, problem in rounds:
        status = status_of(server_state, problem, before)
        assert status_of(server_state, problem, status, LATER) == status
        if server_state is None:
            for field in ("recurring_run", "last_run", "next_run"):
                assert getattr(status, field) == getattr(before, field)
        condition = status.condition("Scheduled")
        assert (condition.status == "True") == (problem is None)
        before = status
