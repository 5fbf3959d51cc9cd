import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.errors import InputError
from agentworld.records.statements.alias import SimulatorUse
from agentworld_operator.policy.admission import (
    API_VERSION,
    Denial,
    answer,
    check_deletion,
    check_schedule,
    check_simulator,
    digest_in_use,
    read_review,
    spec_of_alias,
)
from make.simulator import alias, schedule, simulator, there


def review(operation="CREATE", kind="Simulator", **request):
    defaults = {
        "uid": "1-2",
        "kind": {"group": "agentworld.dev", "version": "v1alpha1", "kind": kind},
        "namespace": "worlds",
        "operation": operation,
        "userInfo": {"username": "ada", "groups": ["system:authenticated"]},
        "object": simulator(),
    }
    body = {"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": defaults | request}
    return json.loads(json.dumps(body))


def admission_request(**request):
    return read_review(review(**request))


def update_request(**serving):
    return admission_request(operation="UPDATE", oldObject=simulator(), object=simulator(**serving))


@pytest.mark.parametrize("tenant", ["Acme", "a/b", "", "-a", "a" * 64])
def test_an_invalid_tenant_name_is_refused(tenant):
    assert check_simulator(update_request(tenants=["acme", "team-2"])) is None
    denied = check_simulator(update_request(tenants=["acme", tenant]))
    assert denied.message.startswith("spec.serving.tenants.1: ")


def test_a_review_contains_the_user_the_kind_and_the_object_name():
    request = admission_request(dryRun=True)
    assert (request.uid, request.user_info.username, request.dry_run) == ("1-2", "ada", True)
    assert (request.kind.kind, request.object_name) == ("Simulator", "one")


def test_a_review_identifies_the_object_and_its_generation():
    first, second = there(alias()), there(alias())
    second["metadata"]["generation"] = 2
    created, deleted = (
        admission_request(object=first),
        admission_request(operation="DELETE", object=None, oldObject=first),
    )
    updated = admission_request(operation="UPDATE", object=second, oldObject=first)
    requests = [request.object_request for request in (created, updated, deleted)]
    assert requests == ["uid-stable/1", "uid-stable/2", "uid-stable/1"]


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {}},
        review(uid=""),
        review(object=None),
        review(operation="DELETE"),
        review(operation="UPDATE"),
        review(object=[1]),
        review(namespace=7),
    ],
)
def test_an_invalid_review_raises_an_input_error(body):
    with pytest.raises(InputError):
        read_review(body)


@pytest.mark.compute
@given(st.recursive(st.none() | st.text() | st.integers(), st.lists))
def test_arbitrary_data_raises_an_input_error(sent):
    for body in (sent, {"request": sent}):
        with pytest.raises(InputError):
            read_review(body)


def test_an_answer_contains_the_uid_of_the_request_and_the_reason():
    assert answer("7", None)["response"] == {"uid": "7", "allowed": True}
    response = answer("7", Denial("no", 409))["response"]
    assert response == {"uid": "7", "allowed": False, "status": {"code": 409, "message": "no"}}


def test_serving_may_change_and_an_identity_may_not():
    assert check_simulator(update_request(replicas=3)) is None
    denied = check_simulator(
        admission_request(operation="UPDATE", oldObject=simulator(), object=simulator("two"))
    )
    assert "an identity never changes: create a new Simulator" in denied.message


def test_a_denial_reports_the_first_problem_of_a_spec():
    invalid_simulator = simulator(replicas=-1)
    assert check_simulator(admission_request(object=invalid_simulator)).message.startswith(
        "spec.serving.replicas: "
    )


def test_an_existing_invalid_simulator_may_be_labeled():
    invalid_simulator = simulator(replicas=-1)
    labeled_simulator = copy.deepcopy(invalid_simulator)
    labeled_simulator["metadata"]["labels"] = {"team": "a"}
    assert (
        check_simulator(
            admission_request(
                operation="UPDATE", oldObject=invalid_simulator, object=labeled_simulator
            )
        )
        is None
    )


def test_an_invalid_alias_is_refused_with_the_first_problem():
    request = admission_request(
        kind="SimulatorAlias", object=alias(canary={"simulator": "two", "percent": 100})
    )
    assert spec_of_alias(request).message.startswith("spec.canary.percent: ")
    assert spec_of_alias(admission_request(object=alias())).simulator == "one"


@pytest.mark.parametrize(
    ("aliases", "open_runs", "message"),
    [
        (["stable"], 0, "one is what stable means; move or delete that alias first"),
        ([f"a{n}" for n in range(6)], 0, "what a0, a1, a2, a3, a4 and others means"),
        ([], 2, r"one has open runs (2); close them first"),
        ([], 0, None),
    ],
)
def test_a_simulator_in_use_is_not_deleted(aliases, open_runs, message):
    use = SimulatorUse(open_runs=open_runs, open_episodes=0, aliases=tuple(aliases))
    denied = check_deletion("one", use)
    assert (denied is None) if message is None else (message in denied.message)


@pytest.mark.parametrize(
    ("status", "digest"),
    [
        ({"digest": "d", "conditions": [{"type": "Verified", "reason": "FilesMatch"}]}, "d"),
        ({"digest": "d", "conditions": [{"type": "Verified", "reason": "SameAsAnother"}]}, None),
        ({"digest": "d"}, "d"),
        ({}, None),
        (None, None),
    ],
)
def test_a_simulator_served_by_a_duplicate_has_no_digest_in_use(status, digest):
    assert digest_in_use({"status": status}) == digest


def schedule_denial(name="nightly", **spec):
    return check_schedule(admission_request(kind="TrainingSchedule", object=schedule(name, **spec)))


def test_a_schedule_with_an_invalid_cron_name_or_store_is_refused():
    """The resource definition only counts the five fields, and cannot see the namespace."""
    assert schedule_denial() is None
    assert "has the minute '61'" in schedule_denial(cron="61 3 * * *").message
    assert schedule_denial("n" * 121) is None  # with `worlds.` the longest valid name
    assert "more than 128 letters" in schedule_denial("n" * 122).message
    assert schedule_denial(store="here").code == 422


def test_an_existing_invalid_schedule_may_be_updated_with_the_same_spec():
    invalid_schedule = schedule(cron="61 3 * * *")
    update = admission_request(
        operation="UPDATE",
        kind="TrainingSchedule",
        object=invalid_schedule,
        oldObject=invalid_schedule,
    )
    assert check_schedule(update) is None
