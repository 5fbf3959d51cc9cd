"""Reconciling a kind with a scripted reconciler, on a cluster in memory."""

import asyncio

import pytest

from agentworld.cluster.records.schedule import ScheduleStatus
from agentworld.errors import ClusterError, StoreError
from agentworld_operator.cache import Cache
from agentworld_operator.controllers.controller import Controller, Outcome
from agentworld_operator.policy.conditions import ConditionState, conditions
from fakes.virtual_time import run

KIND = "TrainingSchedule"


class Writes:
    """The writes, in order."""

    def __init__(self, cache):
        self._cache = cache
        self.kinds = []

    def create(self, event):
        self.kinds.append(event["kind"])

    def write_status(self, kind, name, status):
        self.kinds.append(kind)
        resource = self._cache.get(kind, name)
        version = int(resource["metadata"]["resourceVersion"]) + 1
        metadata = resource["metadata"] | {"resourceVersion": str(version)}
        return resource | {"metadata": metadata, "status": status}


class Scripted:
    """Returns these outcomes, one per round, and records the time of each round."""

    kind = KIND
    status_type = ScheduleStatus

    def __init__(self, *outcomes):
        self._outcomes = list(outcomes)
        self.rounds = []
        self.cleaned = []

    def affected_names(self, kind, resource):
        return [resource["metadata"]["name"]] if kind == KIND else ["nightly", "weekly"]

    async def reconcile(self, resource, before, _now):
        name = resource["metadata"]["name"]
        self.rounds.append((asyncio.get_running_loop().time(), name, len(before.conditions)))
        return self._outcomes.pop(0) if self._outcomes else Outcome(before)

    async def clean_up(self, name):
        self.cleaned.append(name)
        return self._outcomes.pop(0) if self._outcomes else Outcome()


def suspended_status():
    states = [ConditionState("Scheduled", "False", "Suspended")]
    return ScheduleStatus(conditions=conditions((), states, 1, "2026-01-01T00:00:00Z"))


def resource(name="nightly"):
    metadata = {"name": name, "namespace": "n", "uid": f"u-{name}", "resourceVersion": "7"}
    return {"metadata": metadata | {"generation": 1}, "spec": {}}


@pytest.fixture
def cache():
    cache = Cache()
    cache.put(KIND, resource())
    return cache


@pytest.fixture
def cluster(cache):
    return Writes(cache)


def work(controller, seconds, *changes):
    """Runs the controller for these seconds after these changes."""

    async def begin():
        task = asyncio.create_task(controller.run())
        for change in changes:
            controller.on_change(*change)
        await asyncio.sleep(seconds)
        task.cancel()

    run(begin())


def test_a_status_is_written_once_with_its_events_and_read_in_the_next_round(cache, cluster):
    scripted = Scripted(Outcome(suspended_status()))
    controller = Controller(cluster, cache, scripted)
    asyncio.run(controller.reconcile("nightly"))
    asyncio.run(controller.reconcile("nightly"))
    assert cluster.kinds == ["Event", KIND]
    assert [num_conditions for *_, num_conditions in scripted.rounds] == [0, 1]


def test_an_outcome_without_a_status_writes_nothing(cache, cluster):
    asyncio.run(Controller(cluster, cache, Scripted(Outcome())).reconcile("nightly"))
    assert cluster.kinds == []


@pytest.mark.parametrize("is_deleted", [True, False], ids=["gone", "going"])
def test_a_deleted_resource_is_cleaned_up(cache, cluster, is_deleted):
    if is_deleted:
        cache.drop(KIND, resource())
    else:
        metadata = resource()["metadata"] | {"deletionTimestamp": "now", "resourceVersion": "8"}
        cache.put(KIND, resource() | {"metadata": metadata})
    scripted = Scripted()
    asyncio.run(Controller(cluster, cache, scripted).reconcile("nightly"))
    assert (scripted.cleaned, scripted.rounds) == (["nightly"], [])


def test_a_problem_is_written_once_and_retried_with_growing_pauses(cache, cluster):
    problem = Outcome(suspended_status(), StoreError("the disk is gone"))
    scripted = Scripted(problem, problem)
    work(Controller(cluster, cache, scripted), 60, (KIND, resource()))
    assert cluster.kinds == ["Event", KIND]
    assert [moment for moment, *_ in scripted.rounds] == [0, 0.5, 1.5]


def test_a_resource_is_reconciled_again_after_the_seconds_of_its_outcome(cache, cluster):
    scripted = Scripted(*[Outcome(look_again_seconds=5)] * 2)
    work(Controller(cluster, cache, scripted), 60, (KIND, resource()))
    assert [moment for moment, *_ in scripted.rounds] == [0, 5, 10]


def test_a_failed_cleanup_is_retried(cache, cluster):
    cache.drop(KIND, resource())
    scripted = Scripted(Outcome(problem=ClusterError("gone")), Outcome(look_again_seconds=5))
    work(Controller(cluster, cache, scripted), 60, (KIND, resource()))
    assert scripted.cleaned == ["nightly"] * 3


def test_a_change_reconciles_the_names_that_the_reconciler_returns(cache, cluster):
    cache.put(KIND, resource("weekly"))
    scripted = Scripted()
    work(Controller(cluster, cache, scripted), 1, ("Pod", resource("pod")))
    assert sorted(name for _, name, _ in scripted.rounds) == ["nightly", "weekly"]
