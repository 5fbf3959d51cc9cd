"""A Kubernetes of today takes the definitions, and serves what they promise to kubectl."""

import pytest

from agentworld.cluster.api_resources import API_RESOURCES
from agentworld.cluster.names import API_VERSION
from agentworld_operator.resources.crd import crd
from agentworld_operator.resources.kinds import KINDS
from cel.server import NAMESPACE
from make.simulator import alias, schedule, simulator
from waiting import wait_for

pytestmark = pytest.mark.waits

OLDEST = (1, 30)  # that the operator is for

EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)


def test_the_server_has_a_supported_kubernetes_version(api):
    told = api.client.get("/version").json()
    assert (int(told["major"]), int(told["minor"])) >= OLDEST


@EACH
def test_a_definition_is_accepted_without_a_warning(said, kind):
    assert said[kind.kind].status_code == 201, said[kind.kind].text
    assert said[kind.kind].headers.get_list("warning") == []


@EACH
def test_a_definition_is_established_and_its_schema_is_structural(api, kind):
    def conditions():
        told = api.definition(kind)["status"]["conditions"]
        return {each["type"]: each["status"] for each in told}

    wait_for(lambda: conditions().get("Established") == "True")
    assert conditions() == {"NamesAccepted": "True", "Established": "True"}


@EACH
def test_the_stored_definition_equals_the_written_definition(api, kind):
    assert api.definition(kind)["spec"]["versions"] == crd(kind)["spec"]["versions"]


def test_kubectl_scale_changes_the_replicas_of_a_simulator(api):
    made = simulator("scaled", replicas=2)
    api.create(made).raise_for_status()
    told = {"status": {"replicas": 1, "selector": "app.kubernetes.io/name=agentworld-engine"}}
    api.patch("Simulator", "scaled", told, "status").raise_for_status()
    scale = api.get("Simulator", "scaled/scale")
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 2},
        told["status"],
    )
    wanted = {"spec": {"replicas": 5}}
    api.patch("Simulator", "scaled", wanted, "scale").raise_for_status()
    kept = api.get("Simulator", "scaled")["spec"]
    refused = api.patch("Simulator", "scaled", {"spec": {"replicas": -1}}, "scale")
    api.delete(made)
    assert kept["serving"]["replicas"] == 5
    assert kept["identity"] == made["spec"]["identity"]
    assert refused.status_code == 422, refused.text


@pytest.mark.parametrize("made", [simulator("listed"), alias("one", "listed"), schedule("listed")])
def test_kubectl_get_shows_the_columns(api, made):
    api.create(made).raise_for_status()
    table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    kind = next(kind for kind in KINDS if kind.kind == made["kind"])
    path = API_RESOURCES[kind.kind].path(NAMESPACE, "listed")
    told = api.client.get(path, headers=table).raise_for_status().json()
    api.delete(made)
    names = [column["name"] for column in told["columnDefinitions"]]
    assert names == ["Name", *(column.name for column in kind.columns)]
    assert len(told["rows"][0]["cells"]) == len(names)


def test_the_short_names_and_the_category_are_served(api):
    def served():
        told = api.client.get(f"/apis/{API_VERSION}").json()["resources"]
        return {each["name"]: each for each in told if "/" not in each["name"]}

    wait_for(lambda: served().keys() == {kind.plural for kind in KINDS})  # told after objects are
    assert {name: each["shortNames"] for name, each in served().items()} == {
        kind.plural: [kind.short_name] for kind in KINDS
    }
    assert all(each["categories"] == ["agentworld"] for each in served().values())
