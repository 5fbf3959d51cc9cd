"""A current Kubernetes accepts the definitions, and serves their columns and scale to kubectl."""

import pytest

from agentworld.cluster.api_resources import API_RESOURCES
from agentworld.cluster.names import API_VERSION
from agentworld_operator.resources.crd import crd
from agentworld_operator.resources.kinds import KINDS
from cel.server import NAMESPACE
from make.simulator import alias, schedule, simulator
from waiting import wait_for

pytestmark = pytest.mark.waits

OLDEST = (1, 30)  # the oldest version that the operator supports

EACH_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)


def test_the_server_has_a_supported_kubernetes_version(api):
    version = api.client.get("/version").json()
    assert (int(version["major"]), int(version["minor"])) >= OLDEST


@EACH_KIND
def test_a_definition_is_accepted_without_a_warning(said, kind):
    assert said[kind.kind].status_code == 201, said[kind.kind].text
    assert said[kind.kind].headers.get_list("warning") == []


@EACH_KIND
def test_a_definition_is_established_and_its_schema_is_structural(api, kind):
    def conditions():
        entries = api.definition(kind)["status"]["conditions"]
        return {condition["type"]: condition["status"] for condition in entries}

    wait_for(lambda: conditions().get("Established") == "True")
    assert conditions() == {"NamesAccepted": "True", "Established": "True"}


@EACH_KIND
def test_the_stored_definition_equals_the_written_definition(api, kind):
    assert api.definition(kind)["spec"]["versions"] == crd(kind)["spec"]["versions"]


def test_kubectl_scale_changes_the_replicas_of_a_simulator(api):
    resource = simulator("scaled", replicas=2)
    api.create(resource).raise_for_status()
    status_change = {
        "status": {"replicas": 1, "selector": "app.kubernetes.io/name=agentworld-engine"}
    }
    api.patch("Simulator", "scaled", status_change, "status").raise_for_status()
    scale = api.get("Simulator", "scaled/scale")
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 2},
        status_change["status"],
    )
    scale_change = {"spec": {"replicas": 5}}
    api.patch("Simulator", "scaled", scale_change, "scale").raise_for_status()
    spec = api.get("Simulator", "scaled")["spec"]
    answer = api.patch("Simulator", "scaled", {"spec": {"replicas": -1}}, "scale")
    api.delete(resource)
    assert spec["serving"]["replicas"] == 5
    assert spec["identity"] == resource["spec"]["identity"]
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize(
    "resource", [simulator("listed"), alias("one", "listed"), schedule("listed")]
)
def test_kubectl_get_shows_the_columns(api, resource):
    api.create(resource).raise_for_status()
    headers = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    kind = next(kind for kind in KINDS if kind.kind == resource["kind"])
    path = API_RESOURCES[kind.kind].path(NAMESPACE, "listed")
    table = api.client.get(path, headers=headers).raise_for_status().json()
    api.delete(resource)
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names == ["Name", *(column.name for column in kind.columns)]
    assert len(table["rows"][0]["cells"]) == len(names)


def test_the_short_names_and_the_category_are_served(api):
    def resources():
        entries = api.client.get(f"/apis/{API_VERSION}").json()["resources"]
        return {resource["name"]: resource for resource in entries if "/" not in resource["name"]}

    wait_for(
        lambda: resources().keys() == {kind.plural for kind in KINDS}
    )  # later than the objects
    assert {name: resource["shortNames"] for name, resource in resources().items()} == {
        kind.plural: [kind.short_name] for kind in KINDS
    }
    assert all(resource["categories"] == ["agentworld"] for resource in resources().values())
