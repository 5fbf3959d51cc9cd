"""One name is one recurring run, whatever is killed on the way to it."""

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
FIRST = range(11)
EXCHANGE = range(9)
REMOVAL = range(5)
"""The requests that each of these takes; every one of them is lost in turn."""


def planned(at, compiled) -> Plan:
    version = upload(at, compiled)
    return Plan(name="nightly", cron="0 3 * * *", version=version, arguments=ARGUMENTS)


@pytest.fixture
def plan(at, compiled) -> Plan:
    return planned(at, compiled)


def other(plan: Plan) -> Plan:
    return plan.model_copy(update={"cron": "30 4 * * *"})


def assert_only(server, plan: Plan) -> None:
    """One recurring run is there, enabled and of this plan, and never were two enabled."""
    (told,) = server.schedules.values()
    assert (told.mode, told.display_name) == ("ENABLE", plan.name)
    assert told.trigger.cron_schedule.cron == f"0 {plan.cron}"
    assert told.runtime_config.parameters == plan.arguments
    assert told.pipeline_version_reference.pipeline_version_id == plan.version.id
    assert (told.max_concurrency, told.no_catchup) == ("1", True)
    assert server.most_enabled == 1
    assert server.runs == {}


def test_a_schedule_is_one_recurring_run_of_one_run_at_a_time(at, server, plan):
    made = schedule(at, plan)
    assert_only(server, plan)
    assert (made.name, made.cron, made.enabled) == ("nightly", "0 3 * * *", True)
    assert made.next_run > datetime.now(UTC)
    assert (made.next_run.hour, made.next_run.minute) == (3, 0)


def test_scheduling_the_same_plan_again_changes_nothing(at, server, plan):
    made = schedule(at, plan)
    asked = len(server.asked)
    assert schedule(at, plan).id == made.id
    assert {each.split()[0] for each in server.asked[asked:]} == {"GET"}
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
    made = schedule(at, plan)
    server.schedules[made.id].mode = "DISABLE"
    assert schedule(at, plan).id == made.id
    assert_only(server, plan)


def test_another_name_is_another_schedule(at, server, plan):
    schedule(at, plan)
    schedule(at, plan.model_copy(update={"name": "weekly", "cron": "0 3 * * 0"}))
    assert [(each.name, each.enabled) for each in schedules(at)] == [
        ("nightly", True),
        ("weekly", True),
    ]
    server.largest_page = 1
    assert len(schedules(at)) == 2


def interrupted(deed) -> bool:
    try:
        deed()
    except AgentworldError:
        return True
    return False


@pytest.mark.parametrize("number", FIRST)
@pytest.mark.parametrize("loss", ["before", "after"])
def test_retrying_an_interrupted_first_schedule_gives_one_recurring_run(
    at, server, compiled, loss, number
):
    def deed():
        plan = planned(at, compiled)
        schedule(at, plan)
        return plan

    setattr(server, loss, lambda asked: asked == number)
    assert interrupted(deed)
    assert {each.mode for each in server.schedules.values()} <= {"ENABLE", "DISABLE"}
    assert_only(server, deed())
    assert (len(server.pipelines), len(server.versions), len(server.experiments)) == (1, 1, 1)


@pytest.mark.parametrize("number", EXCHANGE)
@pytest.mark.parametrize("loss", ["before", "after"])
def test_retrying_an_interrupted_replacement_completes_the_replacement(
    at, server, plan, loss, number
):
    schedule(at, plan)
    begun = len(server.asked)
    setattr(server, loss, lambda asked: asked == begun + number)
    assert interrupted(lambda: schedule(at, other(plan)))
    assert len(server.enabled("nightly")) <= 1
    schedule(at, other(plan))
    assert_only(server, other(plan))


@pytest.mark.parametrize("number", EXCHANGE)
@pytest.mark.parametrize("loss", ["before", "after"])
def test_an_interrupted_replacement_can_be_undone(at, server, plan, loss, number):
    schedule(at, plan)
    begun = len(server.asked)
    setattr(server, loss, lambda asked: asked == begun + number)
    assert interrupted(lambda: schedule(at, other(plan)))
    schedule(at, plan)
    assert_only(server, plan)


@pytest.mark.parametrize("number", REMOVAL)
@pytest.mark.parametrize("loss", ["before", "after"])
def test_retrying_an_interrupted_deletion_deletes_the_schedule(at, server, plan, loss, number):
    schedule(at, plan)
    begun = len(server.asked)
    setattr(server, loss, lambda asked: asked == begun + number)
    assert interrupted(lambda: unschedule(at, "nightly"))
    unschedule(at, "nightly")
    assert server.schedules == {}


def test_concurrent_schedules_leave_one_recurring_run(server, plan):
    def deed(place: int) -> None:
        own = Connection(ServerSettings(url=server.url))
        mine = plan if place % 2 else other(plan)
        interrupted(lambda: schedule(own, mine))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(deed, range(8)))
    schedule(Connection(ServerSettings(url=server.url)), plan)
    (told,) = server.schedules.values()
    assert (told.mode, told.trigger.cron_schedule.cron) == ("ENABLE", "0 0 3 * * *")


def test_of_two_equal_recurring_runs_the_enabled_run_is_kept(at, server, plan):
    made = schedule(at, plan)
    twin = copy(server.schedules[made.id])
    twin.recurring_run_id, twin.mode = "0", "DISABLE"
    server.schedules["0"] = twin
    assert schedule(at, plan) == made
    assert_only(server, plan)


def test_a_schedule_contains_its_last_run(at, server, plan):
    made = schedule(at, plan)
    server.fire(made.id)
    run = server.fire(made.id)
    server.put(run.run_id, "FAILED", "the disk is full")
    (told,) = schedules(at)
    assert (told.last_run.id, told.last_run.state) == (run.run_id, "FAILED")
    assert told.last_run.failure == "the disk is full"


def test_a_schedule_is_deleted_by_its_name_or_its_id(at, server, plan):
    made = schedule(at, plan)
    assert unschedule(at, "weekly") == []
    assert [each.id for each in unschedule(at, made.id)] == [made.id]
    schedule(at, plan)
    (gone,) = unschedule(at, "nightly")
    assert (gone.name, gone.enabled, gone.next_run) == ("nightly", False, None)
    assert server.schedules == {}


def test_a_schedule_with_an_active_run_is_disabled_and_deleted_after_the_run(at, server, plan):
    made = schedule(at, plan)
    run = server.fire(made.id)
    (left,) = unschedule(at, "nightly")
    assert (left.enabled, left.last_run.id) == (False, run.run_id)
    assert server.schedules[made.id].mode == "DISABLE"
    server.put(run.run_id, "SUCCEEDED")
    assert unschedule(at, "nightly")[0].last_run is None
    assert (server.schedules, server.killed) == ({}, [])


def test_a_replacement_does_not_stop_the_run_of_the_older_schedule(at, server, plan):
    run = server.fire(schedule(at, plan).id)
    newer = schedule(at, other(plan))
    assert [each.recurring_run_id for each in server.enabled("nightly")] == [newer.id]
    server.put(run.run_id, "FAILED")
    assert schedule(at, other(plan)) == newer
    assert list(server.schedules) == [newer.id]
    assert (server.most_enabled, server.killed) == (1, [])


def test_the_older_plan_can_be_restored_while_its_run_is_active(at, server, plan):
    made = schedule(at, plan)
    server.fire(made.id)
    schedule(at, other(plan))
    assert schedule(at, plan).id == made.id
    assert list(server.schedules) == [made.id]
    assert (server.most_enabled, server.killed) == (1, [])


def test_the_interruption_tests_cover_every_request(at, server, compiled):
    def num_asked(deed) -> int:
        begun = len(server.asked)
        deed()
        return len(server.asked) - begun

    plans = []
    assert num_asked(lambda: plans.append(planned(at, compiled))) == 4
    (plan,) = plans
    assert num_asked(lambda: schedule(at, plan)) == len(FIRST) - 4
    assert num_asked(lambda: schedule(at, other(plan))) == len(EXCHANGE)
    assert num_asked(lambda: unschedule(at, "nightly")) == len(REMOVAL)


def test_a_schedule_without_a_required_argument_is_refused(at, server, plan):
    wrong = plan.model_copy(update={"arguments": {"recipe": "demo"}})
    with pytest.raises(InputError, match="parameter store is not optional"):
        schedule(at, wrong)
    assert server.schedules == {}


def test_listing_and_deleting_on_a_new_server_create_nothing(at, server):
    assert schedules(at) == unschedule(at, "nightly") == []
    assert server.experiments == {}
