"""Events and status writes, on a cluster in memory."""

import asyncio
import threading

import pytest

from agentworld.cluster.records.schedule import ScheduleStatus
from agentworld.errors import ClusterError
from agentworld_operator.policy.conditions import ConditionState, conditions
from agentworld_operator.status import write_status
from waiting import DEADLINE

RESOURCE = {"metadata": {"name": "nightly", "namespace": "n", "uid": "u", "resourceVersion": "7"}}
BEFORE = ScheduleStatus()


class Writes:
    """The writes, in order; the next write of a named kind fails in a given way."""

    def __init__(self):
        self.kinds = []
        self.events = {}
        self.failing = {}

    def create(self, event):
        self._write("Event")
        if event["metadata"]["name"] in self.events:
            raise ClusterError("it is there", status=409)
        self.events[event["metadata"]["name"]] = event["message"]

    def write_status(self, kind, name, status):
        self._write(kind)
        return {"metadata": {"name": name}, "status": status}

    def _write(self, kind):
        if kind in self.failing:
            raise ClusterError("no", status=self.failing.pop(kind))
        self.kinds.append(kind)


@pytest.fixture
def cluster():
    return Writes()


AT = "2026-01-01T00:00:00Z"
CONDITIONS = conditions((), [ConditionState("Scheduled", "False", "Suspended")], 1, AT)


def write(cluster, at=AT, resource=RESOURCE):
    after = BEFORE.model_copy(update={"conditions": CONDITIONS})
    return asyncio.run(write_status(cluster, "TrainingSchedule", resource, BEFORE, after, at))


def test_an_event_is_written_before_its_status(cluster):
    resource = write(cluster)
    assert cluster.kinds == ["Event", "TrainingSchedule"]
    assert list(cluster.events.values()) == ["Scheduled is False"]
    assert resource["status"]["conditions"][0]["reason"] == "Suspended"


def test_a_retried_status_write_has_one_event(cluster, caplog):
    cluster.failing["TrainingSchedule"] = 503
    with pytest.raises(ClusterError):
        write(cluster)
    write(cluster, at="2026-01-01T00:01:00Z")
    assert len(cluster.events) == 1
    assert caplog.messages == []


def test_a_write_canceled_during_its_event_writes_no_status():
    is_asked, may_end, is_created = (threading.Event() for _ in range(3))

    class SlowServer(Writes):
        def create(self, event):
            is_asked.set()
            assert may_end.wait(DEADLINE)
            super().create(event)
            is_created.set()

    async def lose_the_lease(server):
        after = BEFORE.model_copy(update={"conditions": CONDITIONS})
        status_write = write_status(server, "TrainingSchedule", RESOURCE, BEFORE, after, AT)
        task = asyncio.create_task(status_write)
        await asyncio.to_thread(is_asked.wait, DEADLINE)
        task.cancel()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    server = SlowServer()
    asyncio.run(lose_the_lease(server))  # `asyncio.run` waits for its threads
    assert is_created.is_set()
    assert server.kinds == ["Event"]


def test_the_same_change_of_a_later_version_has_a_second_event(cluster):
    write(cluster)
    write(cluster, resource={"metadata": RESOURCE["metadata"] | {"resourceVersion": "8"}})
    assert len(cluster.events) == 2


def test_a_refused_event_is_logged_and_the_status_is_written(cluster, caplog):
    cluster.failing["Event"] = 403
    write(cluster)
    assert cluster.kinds == ["TrainingSchedule"]
    assert "no" in caplog.text
