"""The outcome and the next round of each kind's reconciler; everything else is in memory."""

import asyncio
from types import SimpleNamespace

import pytest

from agentworld.cluster.names import DIGEST_LABEL
from agentworld.cluster.records.schedule import ScheduleStatus
from agentworld.cluster.records.simulator import SimulatorStatus
from agentworld.errors import ClusterError, PipelineError
from agentworld.storage.folder import read_file
from agentworld_operator.cache import Cache
from agentworld_operator.controllers.schedule import ScheduleReconciler
from agentworld_operator.controllers.simulator import SimulatorReconciler
from agentworld_operator.identities import Identities
from agentworld_operator.policy.admission import digest_in_use
from agentworld_operator.settings import OperatorSettings
from fakes.virtual_time import run
from make import records
from make.simulator import NOW, alias, schedule, simulator, there

ONE = records.digest("one")
SETTINGS = OperatorSettings(
    namespace="n", identity="me", service_url="http://s", verifier_image="v", ask_seconds=5
)


def conditions(outcome):
    return {condition.type: condition.reason for condition in outcome.status.conditions}


class Applied:
    """A cluster that accepts every applied object, or raises `failure`."""

    def __init__(self, failure=None):
        self.by_kind = {}
        self._failure = failure

    def apply(self, built):
        if self._failure:
            raise self._failure
        self.by_kind[built["kind"]] = built
        return there(built)

    @property
    def replicas(self):
        return self.by_kind["Deployment"]["spec"]["replicas"]


def simulator_reconciler(cluster=None, cache=None, read=None, open_episodes=lambda _: 0):
    return SimulatorReconciler(
        cluster or Applied(),
        cache or Cache(),
        Identities(read or (lambda _: b"")),
        SETTINGS,
        open_episodes=open_episodes,
        clock=lambda: 0.0,
    )


def serve(reconciler, resource, digest=None):
    status = SimulatorStatus(digest=digest)
    return asyncio.run(reconciler.reconcile(there(resource), status, NOW))


def test_only_an_engine_scaled_by_episodes_is_reconciled_periodically():
    cluster = Applied()
    assert serve(simulator_reconciler(cluster), simulator()).look_again_seconds is None
    assert [*cluster.by_kind] == ["ConfigMap", "Service", "Deployment", "PodDisruptionBudget"]
    assert serve(simulator_reconciler(), simulator(bounds={"max": 2})).look_again_seconds == 5


def test_a_recreated_simulator_does_not_inherit_the_old_scale():
    """A count of None means that the service does not count, so the scale stays."""
    cluster, counts = Applied(), [64, None, None]
    reconciler = simulator_reconciler(cluster, open_episodes=lambda _: counts.pop(0))
    bounded = simulator(bounds={"max": 2})
    serve(reconciler, bounded)
    serve(reconciler, bounded)
    assert cluster.replicas == 2
    asyncio.run(reconciler.clean_up("one"))
    serve(reconciler, bounded)
    assert cluster.replicas == 0


def test_a_refusal_of_the_api_server_is_a_condition_and_is_retried():
    refusal = ClusterError("you may not", status=403)
    outcome = serve(simulator_reconciler(Applied(refusal)), simulator())
    assert (conditions(outcome)["Degraded"], outcome.problem) == ("Forbidden", refusal)


def test_a_temporary_failure_is_raised_and_changes_no_status():
    with pytest.raises(ClusterError, match="gone"):
        serve(simulator_reconciler(Applied(ClusterError("gone"))), simulator())


def test_an_unreadable_manifest_is_a_condition_and_is_retried(tmp_path):
    reference = {"url": str(tmp_path / "manifest.json"), "digest": ONE}
    unreadable = simulator() | {"spec": {"identity": {"reference": reference}}}
    outcome = serve(simulator_reconciler(read=read_file), unreadable)
    assert conditions(outcome)["Verified"] == "Unreadable"
    assert outcome.problem


def test_an_invalid_spec_is_a_condition_and_is_not_retried():
    outcome = serve(simulator_reconciler(), simulator() | {"spec": {}})
    assert (conditions(outcome)["Verified"], outcome.problem) == ("Invalid", None)


@pytest.mark.parametrize(
    ("identity", "reason"),
    [
        ({"reference": {"url": "missing/manifest.json", "digest": ONE}}, "Unreadable"),
        ({"reference": {"url": "changed/manifest.json", "digest": ONE}}, "AnotherManifest"),
        ({}, "Invalid"),
    ],
)
def test_a_refused_simulator_keeps_its_digest_which_guards_its_deletion(tmp_path, identity, reason):
    (tmp_path / "changed").mkdir()
    (tmp_path / "changed" / "manifest.json").write_text("{}")
    reconciler = simulator_reconciler(read=lambda url: read_file(str(tmp_path / url)))
    refused = simulator() | {"spec": {"identity": identity}}
    outcome = serve(reconciler, refused, ONE)
    assert conditions(outcome)["Verified"] == reason
    assert digest_in_use({"status": outcome.status.model_dump(mode="json")}) == ONE


def test_an_engine_change_affects_the_simulators_of_the_engine():
    cache = Cache()
    reconciler = simulator_reconciler(cache=cache)
    for name in ("one", "twin"):
        resource = there(simulator(name, "one"))
        cache.put("Simulator", resource)
        serve(reconciler, resource)
    first = cache.get("Simulator", "one")
    (deployment,) = cache.all("Deployment")
    assert set(reconciler.affected_names("Deployment", deployment)) == {"one", "twin"}
    assert reconciler.affected_names("SimulatorAlias", there(alias())) == []
    cache.drop("Simulator", first)
    assert set(reconciler.affected_names("Simulator", first)) == {"one", "twin"}
    assert list(reconciler.affected_names("Deployment", deployment)) == ["twin"]
    other_pod = {"metadata": {"name": "pod", "labels": {DIGEST_LABEL: "other"}}}
    assert list(reconciler.affected_names("Pod", other_pod)) == []


class Server:
    """Recurring runs in memory."""

    is_configured = True

    def __init__(self):
        self.runs, self.failure, self.deeds = {}, None, []

    def all(self):
        if self.failure:
            raise self.failure
        return {name: list(runs) for name, runs in self.runs.items()}

    def name(self, name):
        return f"n.{name}"

    def ensure(self, name, spec, existing):
        self.deeds.append(f"ensure {name}, of which {len(existing)} are there")
        recurring_run = SimpleNamespace(
            id=f"run of {name} at {spec.cron}", last_run=None, next_run=None
        )
        self.runs[name] = [recurring_run]
        return recurring_run

    def remove(self, name):
        self.deeds.append(f"remove {name}")
        del self.runs[name]


class Schedules:
    """The schedules of a server in memory."""

    def __init__(self):
        self.server, self.cache = Server(), Cache()
        self.reconciler = ScheduleReconciler(self.cache, self.server)

    def put(self, **spec):
        self.cache.put("TrainingSchedule", there(schedule(**spec)))

    async def look(self):
        resource = self.cache.get("TrainingSchedule", "nightly")
        return await self.reconciler.reconcile(resource, ScheduleStatus(), NOW)


@pytest.fixture
def schedules():
    return Schedules()


def test_a_schedule_has_no_status_before_the_first_answer_of_the_server(schedules):
    schedules.put()
    assert asyncio.run(schedules.look()).status is None
    assert asyncio.run(schedules.reconciler.ask_server()) == ["nightly"]
    assert conditions(asyncio.run(schedules.look()))["Scheduled"] == "AsWanted"


def test_recurring_runs_without_a_schedule_are_found_and_removed(schedules):
    schedules.put()
    schedules.server.runs["gone"] = [SimpleNamespace(last_run=None)]
    assert asyncio.run(schedules.reconciler.ask_server()) == ["gone", "nightly"]
    asyncio.run(schedules.reconciler.clean_up("gone"))
    asyncio.run(schedules.reconciler.clean_up("never there"))
    assert schedules.server.deeds == ["remove gone"]


def test_an_unreachable_server_is_a_condition_until_the_server_recovers(schedules, caplog):
    schedules.put()
    schedules.server.failure = PipelineError("down")
    assert asyncio.run(schedules.reconciler.ask_server()) == ["nightly"]
    assert conditions(asyncio.run(schedules.look()))["Scheduled"] == "Unreachable"
    assert "Kubeflow Pipelines: down" in caplog.text
    schedules.server.failure = None
    asyncio.run(schedules.reconciler.ask_server())
    assert conditions(asyncio.run(schedules.look()))["Scheduled"] == "AsWanted"


def test_a_round_waits_for_a_pending_answer_of_the_server(schedules, monkeypatch):
    """Otherwise the answer would overwrite its changes, and the next round would repeat them."""
    schedules.put()

    async def work():
        answer_event = asyncio.Event()
        answer_event.set()

        async def ask(call, *arguments):
            answer = call(*arguments)
            if call == schedules.server.all:
                await answer_event.wait()
            return answer

        monkeypatch.setattr(asyncio, "to_thread", ask)
        await schedules.reconciler.ask_server()
        answer_event.clear()
        task = asyncio.create_task(schedules.reconciler.ask_server())
        first_round = asyncio.create_task(schedules.look())
        await asyncio.sleep(1)  # passes when no task has anything to do
        answer_event.set()
        await task
        await first_round
        await schedules.look()

    run(work())
    assert [deed[-11:] for deed in schedules.server.deeds] == ["0 are there", "1 are there"]
