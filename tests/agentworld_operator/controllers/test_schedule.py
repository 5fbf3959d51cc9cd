"""TrainingSchedules of an operator, in a separate process, with a real API server."""

import socket
from contextlib import closing

import pytest

from agentworld.engine.process import LOOPBACK
from agentworld.errors import ClusterError
from fakes import kfp_server
from make.simulator import schedule, simulator
from waiting import wait_for, wait_until_unchanged

pytestmark = pytest.mark.waits

KIND = "TrainingSchedule"
SCHEDULED = ("True", "AsWanted")


@pytest.fixture
def server():
    with kfp_server.running() as server:
        yield server


@pytest.fixture
def begin(start, server):
    """Starts an operator that knows the server."""

    def start_with_server(name="first", **settings):
        return start(name, **{"kfp_url": server.url, "mirror_seconds": 0.3, **settings})

    return start_with_server


def status(namespace, name="nightly"):
    return namespace.get(KIND, name).get("status", {})


def last_state(namespace):
    """None before the operator knows of a run."""
    return status(namespace).get("lastRun", {}).get("state")


def scheduled(namespace, name="nightly"):
    return namespace.conditions(name, KIND).get("Scheduled")


def is_scheduled(namespace, name="nightly"):
    return scheduled(namespace, name) == SCHEDULED


def crons(server, namespace, name="nightly"):
    """The crons of the enabled recurring runs of a schedule."""
    enabled = server.enabled(f"{namespace.namespace}.{name}")
    return [recurring_run.trigger.cron_schedule.cron for recurring_run in enabled]


def test_a_schedule_creates_one_recurring_run_and_reports_its_last_run(namespace, begin, server):
    begin()
    namespace.create(schedule(recipe="smoke", store="/stores/smoke"))
    wait_for(lambda: is_scheduled(namespace))
    (recurring_run,) = server.schedules.values()
    assert crons(server, namespace) == ["0 0 3 * * *"]
    assert recurring_run.runtime_config.parameters == {"recipe": "smoke", "store": "/stores/smoke"}
    assert (recurring_run.max_concurrency, recurring_run.no_catchup) == ("1", True)
    assert status(namespace)["recurringRun"] == recurring_run.recurring_run_id
    assert status(namespace)["nextRun"].endswith("T03:00:00Z")
    run = server.fire(recurring_run.recurring_run_id)
    wait_for(lambda: status(namespace).get("lastRun", {}).get("id") == run.run_id)
    assert status(namespace)["lastRun"]["state"] == "PENDING"
    server.put(run.run_id, "FAILED", "the disk is full")
    wait_for(lambda: namespace.conditions("nightly", KIND)["Degraded"] == ("True", "RunFailed"))
    assert status(namespace)["lastRun"]["finished"] > status(namespace)["lastRun"]["started"]
    events = {event["message"].partition(":")[0] for event in namespace.all("Event").objects}
    assert {"Scheduled is True", "Degraded is True"} <= events
    assert not {"finalizers", "annotations"} & namespace.get(KIND, "nightly")["metadata"].keys()


def test_a_changed_schedule_replaces_its_recurring_run_and_keeps_its_last_run(
    namespace, begin, server
):
    begin()
    namespace.create(schedule())
    wait_for(lambda: is_scheduled(namespace))
    run = server.fire(status(namespace)["recurringRun"])
    wait_for(lambda: status(namespace).get("lastRun"))
    namespace.patch(KIND, "nightly", {"spec": {"cron": "30 4 * * 1"}})
    wait_for(lambda: crons(server, namespace) == ["0 30 4 * * 1"])
    wait_for(lambda: status(namespace)["nextRun"].endswith("T04:30:00Z"))
    server.put(run.run_id, "SUCCEEDED")
    wait_for(lambda: last_state(namespace) == "SUCCEEDED")
    wait_for(lambda: len(server.schedules) == 1)
    assert (server.most_enabled, server.killed) == (1, [])


def test_a_suspended_schedule_has_no_recurring_run_until_resumed(namespace, begin, server):
    begin()
    namespace.create(schedule())
    wait_for(lambda: is_scheduled(namespace))
    run = server.fire(status(namespace)["recurringRun"])
    namespace.patch(KIND, "nightly", {"spec": {"suspend": True}})
    wait_for(lambda: scheduled(namespace) == ("False", "Suspended"))
    assert crons(server, namespace) == []
    assert not {"recurringRun", "nextRun"} & status(namespace).keys()
    server.put(run.run_id, "SUCCEEDED")
    wait_for(lambda: server.schedules == {})
    wait_for(lambda: last_state(namespace) == "SUCCEEDED")
    assert server.killed == []
    namespace.patch(KIND, "nightly", {"spec": {"suspend": False}})
    wait_for(lambda: is_scheduled(namespace))
    assert crons(server, namespace) == ["0 0 3 * * *"]


def test_deleting_a_schedule_deletes_only_its_recurring_run(namespace, begin, server):
    begin()
    for name in ("nightly", "weekly"):
        namespace.create(schedule(name))
        wait_for(lambda name=name: is_scheduled(namespace, name))
    run = server.fire(status(namespace)["recurringRun"])
    namespace.delete(KIND, "nightly")
    wait_for(lambda: crons(server, namespace) == [])
    server.put(run.run_id, "FAILED")
    wait_for(lambda: len(server.schedules) == 1)
    assert server.killed == []
    assert crons(server, namespace, "weekly") == ["0 0 3 * * *"]


def test_a_schedule_deleted_without_an_operator_is_removed_by_the_next_operator(
    namespace, begin, server
):
    first = begin()
    namespace.create(schedule())
    wait_for(lambda: is_scheduled(namespace))
    assert first.stop() == 0
    namespace.delete(KIND, "nightly")
    begin("second")
    wait_for(lambda: server.schedules == {})


def test_a_disabled_or_deleted_recurring_run_is_restored(namespace, begin, server):
    begin()
    namespace.create(schedule())
    wait_for(lambda: is_scheduled(namespace))
    (recurring_run,) = server.schedules.values()
    recurring_run.mode = "DISABLE"
    wait_for(lambda: crons(server, namespace))
    del server.schedules[recurring_run.recurring_run_id]
    wait_for(lambda: crons(server, namespace))
    assert server.most_enabled == 1


def test_an_unreachable_server_is_a_condition_until_the_server_recovers(namespace, begin, server):
    begin()
    namespace.create(schedule())
    wait_for(lambda: is_scheduled(namespace))
    recurring_run = status(namespace)["recurringRun"]
    server.before = lambda _number: True
    wait_for(lambda: scheduled(namespace) == ("False", "Unreachable"))
    assert status(namespace)["recurringRun"] == recurring_run
    namespace.patch(KIND, "nightly", {"spec": {"cron": "30 4 * * *"}})
    server.before = lambda _number: False
    wait_for(lambda: crons(server, namespace) == ["0 30 4 * * *"])
    wait_for(lambda: is_scheduled(namespace))
    assert (len(server.schedules), server.most_enabled) == (1, 1)


def test_a_rejected_server_token_is_a_condition_until_replaced(namespace, begin, server, tmp_path):
    server.token = "known"
    token = tmp_path / "token"
    token.write_text("unknown")
    begin(kfp_token_file=token)
    namespace.create(schedule())
    wait_for(lambda: scheduled(namespace) == ("False", "Refused"))
    token.write_text("known")
    wait_for(lambda: is_scheduled(namespace))


def test_a_schedule_without_a_server_names_the_missing_chart_value(namespace, start):
    start()
    namespace.create(schedule())
    wait_for(lambda: scheduled(namespace) == ("False", "NotConfigured"))
    assert "pipelines.url" in status(namespace)["conditions"][0]["message"]


def test_a_server_that_does_not_answer_does_not_delay_simulators(namespace, begin):
    with closing(socket.create_server((LOOPBACK, 0))) as server_socket:
        begin(kfp_url=f"http://{LOOPBACK}:{server_socket.getsockname()[1]}")
        namespace.create(schedule())
        namespace.create(simulator())
        wait_for(lambda: namespace.conditions("one").get("EngineReady") == ("False", "Starting"))
        assert scheduled(namespace) is None


def test_an_invalid_schedule_has_a_reason_and_does_not_delay_other_schedules(
    namespace, begin, server
):
    begin()
    namespace.create(schedule("never", cron="0 0 30 2 *"))
    namespace.create(schedule("wrong", pipeline="wrold"))
    namespace.create(schedule("odd", simulator="production"))
    namespace.create(schedule())
    wait_for(lambda: is_scheduled(namespace))
    wait_for(lambda: scheduled(namespace, "never") == ("False", "Invalid"))
    wait_for(lambda: scheduled(namespace, "wrong") == ("False", "Refused"))
    assert "pipelines are world_model" in status(namespace, "wrong")["conditions"][0]["message"]
    wait_for(lambda: scheduled(namespace, "odd") == ("False", "Refused"))
    assert "takes no simulator" in status(namespace, "odd")["conditions"][0]["message"]
    assert len(server.schedules) == 1


def test_a_new_leader_keeps_existing_recurring_runs(namespace, begin, server):
    first = begin("first")
    namespace.create(schedule())
    wait_for(lambda: is_scheduled(namespace))
    recurring_run = status(namespace)["recurringRun"]
    second = begin("second")
    first.kill()
    namespace.end_lease()
    wait_for(second.leads)
    namespace.create(schedule("weekly"))
    wait_for(lambda: is_scheduled(namespace, "weekly"))
    assert status(namespace)["recurringRun"] == recurring_run
    assert (len(server.schedules), len(server.versions), server.most_enabled) == (2, 1, 1)


def test_nothing_is_written_while_nothing_changes(namespace, begin, server):
    begin()
    for name in ("nightly", "weekly"):
        namespace.create(schedule(name))
        wait_for(lambda name=name: is_scheduled(namespace, name))

    def versions():
        objects = [*namespace.all(KIND).objects, *namespace.all("Event").objects]
        return [resource["metadata"]["resourceVersion"] for resource in objects]

    def num_lists(requests):
        """The number of requests for all recurring runs."""
        return requests.count("GET /recurringruns")

    wait_until_unchanged(versions, seconds=2)
    num_before = len(server.requests)
    wait_for(lambda: num_lists(server.requests[num_before:]) >= 7)
    requests = server.requests[num_before:]
    assert {request.split()[0] for request in requests} == {"GET"}
    assert len(requests) <= 4 * (num_lists(requests) + 1)


@pytest.mark.parametrize("spec", [{"cron": ""}, {"pipeline": ""}, {"store": None}])
def test_the_api_server_refuses_a_schedule_without_a_required_field(namespace, spec):
    with pytest.raises(ClusterError, match=next(iter(spec))):
        namespace.create(schedule(**spec))
