"""Settings of a team for all pods: an identity in a cloud, labels, environment, and placement."""

import json
import re

import pytest
from helm_python.errors import HelmRenderError

import make.chart
from agentworld_operator.children.pod import EnginePods
from make.chart import EVERYTHING, EXTERNAL, PODS

COMPONENTS = ("backup", "console", "database", "mlflow", "operator", "service")
CONSOLE = {"console": {"enabled": True}}


def accounts(objects):
    return {
        item["metadata"]["name"]: item["metadata"].get("annotations", {})
        for item in objects
        if item["kind"] == "ServiceAccount"
    }


@pytest.mark.parametrize("component", COMPONENTS)
def test_each_component_has_the_configured_pod_settings(component):
    objects = make.chart.objects(EVERYTHING)
    template, values = make.chart.pods(objects)[component], EVERYTHING[component]
    metadata, spec = template["metadata"], template["spec"]
    assert metadata["labels"] == {
        **PODS["podLabels"],
        "app.kubernetes.io/name": "agentworld",
        "app.kubernetes.io/instance": "agentworld",
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/part-of": "agentworld",
    }
    assert PODS["podAnnotations"].items() <= metadata["annotations"].items()
    [container] = spec["containers"]
    assert values["extraEnv"][0] in container["env"]
    for name in ("priorityClassName", "nodeSelector", "tolerations"):
        assert spec[name] == values[name]
    [spread] = spec["topologySpreadConstraints"]
    assert values["topologySpreadConstraints"][0].items() <= spread.items()
    assert spread["labelSelector"]["matchLabels"].items() <= metadata["labels"].items()


@pytest.mark.parametrize("job", ["definitions", "secrets"])
def test_job_pods_have_the_placement_and_labels_of_the_operator(job):
    template = make.chart.pods(make.chart.objects(EVERYTHING))[job]
    assert PODS["podLabels"].keys() <= template["metadata"]["labels"].keys()
    assert template["metadata"]["labels"]["app.kubernetes.io/component"] == job
    assert template["spec"]["nodeSelector"] == EVERYTHING["operator"]["nodeSelector"]
    assert template["metadata"]["annotations"] == PODS["podAnnotations"]


def test_each_component_has_its_own_account_with_its_cloud_identity():
    objects = make.chart.objects(EVERYTHING)
    annotations = accounts(objects)
    for component in (*COMPONENTS, "engine"):
        role = annotations[f"agentworld-{component}"]["eks.amazonaws.com/role-arn"]
        assert role.endswith(f":role/{component}")
    for component, template in make.chart.pods(objects).items():
        account = {"restore": "backup"}.get(component, component)
        assert template["spec"]["serviceAccountName"] == f"agentworld-{account}"
    other_names = ("definitions", "engine", "secrets")
    assert annotations.keys() == {f"agentworld-{name}" for name in (*COMPONENTS, *other_names)}


def test_an_existing_account_gets_the_rights_of_the_replaced_account():
    account_values = {"serviceAccount": {"create": False, "name": "ours"}}
    objects = make.chart.objects(
        {
            "operator": account_values,
            "service": account_values,
            "console": {**account_values, "enabled": True},
        }
    )
    assert accounts(objects).keys() == {
        f"agentworld-{name}" for name in ("database", "mlflow", "secrets")
    }
    for component in ("console", "operator", "service"):
        assert make.chart.pods(objects)[component]["spec"]["serviceAccountName"] == "ours"
        bindings = [
            item
            for item in objects
            if item["kind"].endswith("RoleBinding")
            and item["metadata"]["labels"]["app.kubernetes.io/component"] == component
        ]
        assert bindings
        assert {item["subjects"][0]["name"] for item in bindings} == {"ours"}
    access = make.chart.only(objects, "ConfigMap", "agentworld-access")["data"]["access.yaml"]
    assert "worlds/ours" in access


def test_disabled_account_creation_without_a_name_is_refused():
    with pytest.raises(
        HelmRenderError, match=re.escape("mlflow.serviceAccount.create is false; name")
    ):
        make.chart.files({"mlflow": {"serviceAccount": {"create": False}}})


def engine_pods(values):
    [container] = make.chart.pods(make.chart.objects(values))["operator"]["spec"]["containers"]
    environment = {variable["name"]: variable.get("value") for variable in container["env"]}
    return EnginePods.model_validate(json.loads(environment.get("AGENTWORLD_ENGINE_PODS", "{}")))


def test_the_operator_gets_the_configured_engine_pod_settings():
    assert engine_pods({}) == EnginePods()
    assert engine_pods(EVERYTHING) == EnginePods(
        service_account="agentworld-engine",
        labels=PODS["podLabels"],
        annotations=PODS["podAnnotations"],
        priority_class="high",
    )
    values = {"engines": {"serviceAccount": {"name": "readers"}}}
    assert engine_pods(values).service_account == "readers"
    assert "readers" not in accounts(make.chart.objects(values))


def test_with_cloud_identities_no_pod_has_a_static_key():
    """Buckets are accessed with the account; a database's address still contains its password."""
    values = {**EXTERNAL, "stores": {**EXTERNAL["stores"], "existingSecret": ""}}
    objects = make.chart.objects(values)
    for template in make.chart.pods(objects).values():
        for container in template["spec"]["containers"]:
            assert "envFrom" not in container
            assert not [item for item in container.get("env", ()) if "AWS" in item["name"]]
