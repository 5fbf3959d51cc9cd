"""One name is one recurring run, also after interruptions."""

from concurrent.futures import ThreadPoolExecutor
from copy import copy
from datetime import UTC, datetime

import pytest

from agentworld.errors import AgentworldError, InputError
from agentworld_pipelines.connection import Connection
from agentworld_pipelines.records import Plan
from agentworld_pipelines.schedule import schedule, schedules, unschedule
from agentworld_pipelines.server import upload
from agentworld_pipelines.settings import ServerSettings

pytestmark = pytest.mark.waits

ARGUMENTS = {"recipe": "demo", "store": "/store"}
FIRST_REQUESTS = range(11)
REPLACEMENT_REQUESTS = range(9)
DELETION_REQUESTS = range(5)
"""The requests that each of these takes; every one of them is lost in turn."""


def make_plan(at, compiled) -> Plan:
    version = upload(at, compiled)
    return Plan(name="nightly", cron="0 3 * * *", version=version, arguments=ARGUMENTS)


@pytest.fixture
def plan(at, compiled) -> Plan:
    return make_plan(at, compiled)


def other_plan(plan: Plan) -> Plan:
    return plan.model_copy(update={"cron": "30 4 * * *"})


def assert_only(server, plan: Plan) -> None:
    """Only one recurring run exists, enabled and of this plan, and no two were ever enabled."""
    (recurring_run,) = server.schedules.values()
    assert (recurring_run.mode, recurring_run.display_name) == ("ENABLE", plan.name)
    assert recurring_run.trigger.cron_schedule.cron == f"0 {plan.cron}"
    assert recurring_run.runtime_config.parameters == plan.arguments
    assert recurring_run.pipeline_version_reference.pipeline_version_id == plan.version.id
    assert (recurring_run.max_concurrency, recurring_run.no_catchup) == ("1", True)
    assert server.most_enabled == 1
    assert server.runs == {}


def test_a_schedule_is_one_recurring_run_of_one_run_at_a_time(at, server, plan):
    record = schedule(at, plan)
    assert_only(server, plan)
    assert (record.name, record.cron, record.enabled) == ("nightly", "0 3 * * *", True)
    assert record.next_run > datetime.now(UTC)
    assert (record.next_run.hour, record.next_run.minute) == (3, 0)


def test_scheduling_the_same_plan_again_changes_nothing(at, server, plan):
    record = schedule(at, plan)
    num_requests = len(server.requests)
    assert schedule(at, plan).id == record.id
    assert {request.split()[0] for request in server.requests[num_requests:]} == {"GET"}
    assert_only(server, plan)


@pytest.mark.parametrize(
    "change",
    [{"cron": "30 4 * * *"}, {"arguments": {**ARGUMENTS, "recipe": "smoke"}}],
    ids=lambda change: next(iter(change)),
)
def test_another_plan_replaces_the_older_recurring_run(at, server, plan, change):
    first = schedule(at, plan)
    second = schedule(at, plan.model_copy(update=change))
    assert second.id != first.id
    assert_only(server, plan.model_copy(update=change))


def test_another_pipeline_version_replaces_the_older_recurring_run(
    at, server, plan, compiled, tmp_path
):
    schedule(at, plan)
    newer = tmp_path / "pipeline.yaml"
    newer.write_text(compiled.read_text().replace("agentworld:0.1.0", "agentworld:0.2.0"))
    newer_plan = plan.model_copy(update={"version": upload(at, newer)})
    schedule(at, newer_plan)
    assert_only(server, newer_plan)


def test_a_disabled_schedule_is_enabled_again(at, server, plan):
    record = schedule(at, plan)
    server.schedules[record.id].mode = "DISABLE"
    assert schedule(at, plan).id == record.id
    assert_only(server, plan)


def test_another_name_is_another_schedule(at, server, plan):
    schedule(at, plan)
    schedule(at, plan.model_copy(update={"name": "weekly", "cron": "0 3 * * 0"}))
    assert [(record.name, record.enabled) for record in schedules(at)] == [
        ("nightly", True),
        ("weekly", True),
    ]
    server.largest_page = 1
    assert len(schedules(at)) == 2


def is_interrupted(action) -> bool:
    try:
        action()
    except AgentworldError:
        return True
    return False


@pytest.mark.parametrize("number", FIRST_REQUESTS)
@pytest.mark.parametrize("loss", ["before", "after"])
def test_retrying_an_interrupted_first_schedule_gives_one_recurring_run(
    at, server, compiled, loss, number
):
    def action():
        plan = make_plan(at, compiled)
        schedule(at, plan)
        return plan

    setattr(server, loss, lambda index: index == number)
    assert is_interrupted(action)
    assert {item.mode for item in server.schedules.values()} <= {"ENABLE", "DISABLE"}
    assert_only(server, action())
    assert (len(server.pipelines), len(server.versions), len(server.experiments)) == (1, 1, 1)


@pytest.mark.parametrize("number", REPLACEMENT_REQUESTS)
@pytest.mark.parametrize("loss", ["before", "after"])
def test_retrying_an_interrupted_replacement_completes_the_replacement(
    at, server, plan, loss, number
):
    schedule(at, plan)
    start = len(server.requests)
    setattr(server, loss, lambda index: index == start + number)
    assert is_interrupted(lambda: schedule(at, other_plan(plan)))
    assert len(server.enabled("nightly")) <= 1
    schedule(at, other_plan(plan))
    assert_only(server, other_plan(plan))


@pytest.mark.parametrize("number", REPLACEMENT_REQUESTS)
@pytest.mark.parametrize("loss", ["before", "after"])
def test_an_interrupted_replacement_can_be_undone(at, server, plan, loss, number):
    schedule(at, plan)
    start = len(server.requests)
    setattr(server, loss, lambda index: index == start + number)
    assert is_interrupted(lambda: schedule(at, other_plan(plan)))
    schedule(at, plan)
    assert_only(server, plan)


@pytest.mark.parametrize("number", DELETION_REQUESTS)
@pytest.mark.parametrize("loss", ["before", "after"])
def test_retrying_an_interrupted_deletion_deletes_the_schedule(at, server, plan, loss, number):
    schedule(at, plan)
    start = len(server.requests)
    setattr(server, loss, lambda index: index == start + number)
    assert is_interrupted(lambda: unschedule(at, "nightly"))
    unschedule(at, "nightly")
    assert server.schedules == {}


def test_concurrent_schedules_leave_one_recurring_run(server, plan):
    def action(number: int) -> None:
        connection = Connection(ServerSettings(url=server.url))
        own_plan = plan if number % 2 else other_plan(plan)
        is_interrupted(lambda: schedule(connection, own_plan))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(action, range(8)))
    schedule(Connection(ServerSettings(url=server.url)), plan)
    (recurring_run,) = server.schedules.values()
    assert (recurring_run.mode, recurring_run.trigger.cron_schedule.cron) == (
        "ENABLE",
        "0 0 3 * * *",
    )


def test_of_two_equal_recurring_runs_the_enabled_run_is_kept(at, server, plan):
    record = schedule(at, plan)
    twin = copy(server.schedules[record.id])
    twin.recurring_run_id, twin.mode = "0", "DISABLE"
    server.schedules["0"] = twin
    assert schedule(at, plan) == record
    assert_only(server, plan)


def test_a_schedule_contains_its_last_run(at, server, plan):
    record = schedule(at, plan)
    server.fire(record.id)
    run = server.fire(record.id)
    server.put(run.run_id, "FAILED", "the disk is full")
    (listed_record,) = schedules(at)
    assert (listed_record.last_run.id, listed_record.last_run.state) == (run.run_id, "FAILED")
    assert listed_record.last_run.failure == "the disk is full"


def test_a_schedule_is_deleted_by_its_name_or_its_id(at, server, plan):
    record = schedule(at, plan)
    assert unschedule(at, "weekly") == []
    assert [item.id for item in unschedule(at, record.id)] == [record.id]
    schedule(at, plan)
    (deletion,) = unschedule(at, "nightly")
    assert (deletion.name, deletion.enabled, deletion.next_run) == ("nightly", False, None)
    assert server.schedules == {}


def test_a_schedule_with_an_active_run_is_disabled_and_deleted_after_the_run(at, server, plan):
    record = schedule(at, plan)
    run = server.fire(record.id)
    (disabled_record,) = unschedule(at, "nightly")
    assert (disabled_record.enabled, disabled_record.last_run.id) == (False, run.run_id)
    assert server.schedules[record.id].mode == "DISABLE"
    server.put(run.run_id, "SUCCEEDED")
    assert unschedule(at, "nightly")[0].last_run is None
    assert (server.schedules, server.killed) == ({}, [])


def test_a_replacement_does_not_stop_the_run_of_the_older_schedule(at, server, plan):
    run = server.fire(schedule(at, plan).id)
    newer_record = schedule(at, other_plan(plan))
    assert [item.recurring_run_id for item in server.enabled("nightly")] == [newer_record.id]
    server.put(run.run_id, "FAILED")
    assert schedule(at, other_plan(plan)) == newer_record
    assert list(server.schedules) == [newer_record.id]
    assert (server.most_enabled, server.killed) == (1, [])


def test_the_older_plan_can_be_restored_while_its_run_is_active(at, server, plan):
    record = schedule(at, plan)
    server.fire(record.id)
    schedule(at, other_plan(plan))
    assert schedule(at, plan).id == record.id
    assert list(server.schedules) == [record.id]
    assert (server.most_enabled, server.killed) == (1, [])


def test_the_interruption_tests_cover_every_request(at, server, compiled):
    def num_requests(action) -> int:
        start = len(server.requests)
        action()
        return len(server.requests) - start

    plans = []
    assert num_requests(lambda: plans.append(make_plan(at, compiled))) == 4
    (plan,) = plans
    assert num_requests(lambda: schedule(at, plan)) == len(FIRST_REQUESTS) - 4
    assert num_requests(lambda: schedule(at, other_plan(plan))) == len(REPLACEMENT_REQUESTS)
    assert num_requests(lambda: unschedule(at, "nightly")) == len(DELETION_REQUESTS)


def test_a_schedule_without_a_required_argument_is_refused(at, server, plan):
    invalid_plan = plan.model_copy(update={"arguments": {"recipe": "demo"}})
    with pytest.raises(InputError, match="parameter store is not optional"):
        schedule(at, invalid_plan)
    assert server.schedules == {}


def test_listing_and_deleting_on_a_new_server_create_nothing(at, server):
    assert schedules(at) == unschedule(at, "nightly") == []
    assert server.experiments == {}
