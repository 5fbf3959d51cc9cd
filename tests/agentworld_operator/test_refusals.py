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
    """The reasons of all conditions about a Simulator that is not ready."""
    states = namespace.conditions("one")
    return {states[name][1] for name in CAUSES if name in states}


def message(namespace):
    status = namespace.get("Simulator", "one")["status"]
    return next(
        condition["message"]
        for condition in status["conditions"]
        if condition["type"] == "Degraded"
    )


def events(namespace, reason):
    objects = namespace.all("Event").objects
    own_events = [event for event in objects if event["involvedObject"]["kind"] == "Simulator"]
    return [event["message"] for event in own_events if event["reason"] == reason]


def rules(namespace):
    return namespace.call("GET", RIGHTS["Role"].path(namespace.namespace, ROLE))["rules"]


def allow(namespace, new_rules):
    """Waits until the API server, which watches these rules, enforces them."""
    path = RIGHTS["Role"].path(namespace.namespace, ROLE)
    namespace.call("PATCH", path, {"rules": new_rules})
    engine_rules = [rule for rule in new_rules if "deployments" in rule["resources"]]
    is_wanted = any("patch" in rule["verbs"] for rule in engine_rules)
    wait_for(lambda: may_change_engines(namespace) == is_wanted)


def may_change_engines(namespace):
    attributes = {"namespace": namespace.namespace, "group": "apps", "resource": "deployments"}
    user = f"system:serviceaccount:{namespace.namespace}:{ROLE}"
    spec = {"user": user, "resourceAttributes": attributes | {"verb": "patch"}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return namespace.call("POST", path, {"spec": spec})["status"]["allowed"]


def test_an_exceeded_quota_is_a_condition_and_an_event(namespace, start):
    set_quota(namespace, {"pods": "0"})
    start()
    namespace.create(simulator())
    wait_for(lambda: reasons(namespace) == {"FailedCreate"})
    assert "exceeded quota: team" in message(namespace)
    messages = events(namespace, "FailedCreate")
    assert any("Degraded is True" in text and "exceeded quota" in text for text in messages)


def test_a_missing_right_is_a_condition_until_granted(namespace, start):
    all_rules = rules(namespace)
    reduced_rules = [
        rule | {"verbs": ["list", "watch"]} if "deployments" in rule["resources"] else rule
        for rule in all_rules
    ]
    allow(namespace, reduced_rules)
    start()
    namespace.create(simulator())
    wait_for(lambda: reasons(namespace) == {"Forbidden"})
    assert "deployments" in message(namespace)
    assert namespace.get("Service", ENGINE)
    assert any("Ready is False" in text for text in events(namespace, "Forbidden"))
    allow(namespace, all_rules)
    wait_for(lambda: namespace.conditions("one")["Ready"] == ("False", "Starting"))
    assert namespace.conditions("one")["Degraded"] == ("False", "AsWanted")


def test_an_immutable_field_is_a_condition_and_an_event(namespace, start):
    config_map = {**type_fields("ConfigMap"), "metadata": {"name": ENGINE}, "immutable": True}
    namespace.create(config_map | {"data": {"manifest.json": "somebody else's"}})
    start()
    namespace.create(simulator())
    wait_for(lambda: reasons(namespace) == {"Invalid"})
    assert "immutable" in message(namespace)
    assert any("immutable" in text for text in events(namespace, "Invalid"))


def test_a_suspended_simulator_whose_engine_may_not_be_stopped_is_degraded(namespace, start):
    start()
    namespace.create(simulator())
    wait_for(lambda: namespace.conditions("one").get("Ready") == ("False", "Starting"))
    all_rules = rules(namespace)
    allow(namespace, [rule for rule in all_rules if "deployments" not in rule["resources"]])
    namespace.change("one", suspend=True)
    wait_for(lambda: namespace.conditions("one")["Degraded"] == ("True", "Forbidden"))
    assert namespace.get("Deployment", ENGINE)["spec"]["replicas"] == 1


class Killed(Exception):
    """The operator was killed."""


class KilledBeforeStatus(Cluster):
    """An operator whose last write is an event."""

    def write_status(self, *_arguments):
        raise Killed


def test_a_crash_between_an_event_and_its_status_loses_neither_and_repeats_none(namespace):
    resource = namespace.create(simulator())
    now = "2026-01-01T00:00:00Z"
    states = [ConditionState("Ready", "False", "FailedCreate", "exceeded quota")]
    before = SimulatorStatus()
    after = before.model_copy(update={"conditions": conditions((), states, 1, now)})
    killed = KilledBeforeStatus(namespace._server, namespace.namespace, OPERATOR)
    with pytest.raises(Killed):
        asyncio.run(write_status(killed, "Simulator", resource, before, after, now))
    assert not namespace.conditions("one")
    later_time = "2026-01-01T00:00:09Z"
    asyncio.run(write_status(namespace, "Simulator", resource, before, after, later_time))
    assert events(namespace, "FailedCreate") == ["Ready is False: exceeded quota"]
    assert namespace.conditions("one") == {"Ready": ("False", "FailedCreate")}
