"""A cluster's refusals in a Simulator's status: a condition, and an event, with a real API
server.
"""

import asyncio

import pytest

from agentworld.cluster.api_resources import type_fields
from agentworld.cluster.client import Cluster
from agentworld.cluster.names import OPERATOR, engine_name
from agentworld.cluster.records.simulator import SimulatorStatus
from agentworld_operator.policy.conditions import ConditionState, conditions
from agentworld_operator.status import write_status
from make.bounds import set_quota
from make.operator import RIGHTS
from make.simulator import pinned_manifest, simulator
from waiting import wait_for

pytestmark = pytest.mark.waits

ENGINE = engine_name(pinned_manifest("one").digest)
ROLE = "agentworld-operator"
CAUSES = ("EngineReady", "Ready", "Degraded")


def reasons(namespace):
    """Why it is not ready, by all conditions that say so."""
    found = namespace.conditions("one")
    return {found[name][1] for name in CAUSES if name in found}


def message(namespace):
    status = namespace.get("Simulator", "one")["status"]
    return next(each["message"] for each in status["conditions"] if each["type"] == "Degraded")


def events(namespace, reason):
    found = namespace.all("Event").objects
    own = [each for each in found if each["involvedObject"]["kind"] == "Simulator"]
    return [each["message"] for each in own if each["reason"] == reason]


def rules(namespace):
    return namespace.call("GET", RIGHTS["Role"].path(namespace.namespace, ROLE))["rules"]


def allow(namespace, told):
    """Waits until the API server, which watches these rules, enforces them."""
    path = RIGHTS["Role"].path(namespace.namespace, ROLE)
    namespace.call("PATCH", path, {"rules": told})
    of_engines = [each for each in told if "deployments" in each["resources"]]
    is_wanted = any("patch" in each["verbs"] for each in of_engines)
    wait_for(lambda: may_change_engines(namespace) == is_wanted)


def may_change_engines(namespace):
    asked = {"namespace": namespace.namespace, "group": "apps", "resource": "deployments"}
    user = f"system:serviceaccount:{namespace.namespace}:{ROLE}"
    spec = {"user": user, "resourceAttributes": asked | {"verb": "patch"}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return namespace.call("POST", path, {"spec": spec})["status"]["allowed"]


def test_an_exceeded_quota_is_a_condition_and_an_event(namespace, start):
    set_quota(namespace, {"pods": "0"})
    start()
    namespace.create(simulator())
    wait_for(lambda: reasons(namespace) == {"FailedCreate"})
    assert "exceeded quota: team" in message(namespace)
    told = events(namespace, "FailedCreate")
    assert any("Degraded is True" in each and "exceeded quota" in each for each in told)


def test_a_missing_right_is_a_condition_until_granted(namespace, start):
    whole = rules(namespace)
    fewer = [
        each | {"verbs": ["list", "watch"]} if "deployments" in each["resources"] else each
        for each in whole
    ]
    allow(namespace, fewer)
    start()
    namespace.create(simulator())
    wait_for(lambda: reasons(namespace) == {"Forbidden"})
    assert "deployments" in message(namespace)
    assert namespace.get("Service", ENGINE)
    assert any("Ready is False" in each for each in events(namespace, "Forbidden"))
    allow(namespace, whole)
    wait_for(lambda: namespace.conditions("one")["Ready"] == ("False", "Starting"))
    assert namespace.conditions("one")["Degraded"] == ("False", "AsWanted")


def test_an_immutable_field_is_a_condition_and_an_event(namespace, start):
    taken = {**type_fields("ConfigMap"), "metadata": {"name": ENGINE}, "immutable": True}
    namespace.create(taken | {"data": {"manifest.json": "somebody else's"}})
    start()
    namespace.create(simulator())
    wait_for(lambda: reasons(namespace) == {"Invalid"})
    assert "immutable" in message(namespace)
    assert any("immutable" in each for each in events(namespace, "Invalid"))


def test_a_suspended_simulator_whose_engine_may_not_be_stopped_is_degraded(namespace, start):
    start()
    namespace.create(simulator())
    wait_for(lambda: namespace.conditions("one").get("Ready") == ("False", "Starting"))
    whole = rules(namespace)
    allow(namespace, [each for each in whole if "deployments" not in each["resources"]])
    namespace.change("one", suspend=True)
    wait_for(lambda: namespace.conditions("one")["Degraded"] == ("True", "Forbidden"))
    assert namespace.get("Deployment", ENGINE)["spec"]["replicas"] == 1


class Killed(Exception):
    """The operator is gone."""


class KilledBeforeStatus(Cluster):
    """An operator whose last write is an event."""

    def write_status(self, *_told):
        raise Killed


def test_a_crash_between_an_event_and_its_status_loses_neither_and_repeats_none(namespace):
    found = namespace.create(simulator())
    now = "2026-01-01T00:00:00Z"
    said = [ConditionState("Ready", "False", "FailedCreate", "exceeded quota")]
    before = SimulatorStatus()
    after = before.model_copy(update={"conditions": conditions((), said, 1, now)})
    killed = KilledBeforeStatus(namespace._server, namespace.namespace, OPERATOR)
    with pytest.raises(Killed):
        asyncio.run(write_status(killed, "Simulator", found, before, after, now))
    assert not namespace.conditions("one")
    later = "2026-01-01T00:00:09Z"
    asyncio.run(write_status(namespace, "Simulator", found, before, after, later))
    assert events(namespace, "FailedCreate") == ["Ready is False: exceeded quota"]
    assert namespace.conditions("one") == {"Ready": ("False", "FailedCreate")}
