"""Kubernetes' own autoscaler stops and restarts an engine, with the autoscaler of the guide.

Instead of an adapter, the API server stores the metric: as a custom resource in the group that the
autoscaler reads.
"""

from collections.abc import Callable
from copy import deepcopy

import pytest

from agentworld.cluster.api_resources import ApiResource
from agentworld.cluster.client import ApiServer, configuration
from agentworld.cluster.names import engine_name
from fakes.definitions import define
from make import guide
from make.chart import ROOT
from make.simulator import NOW, pinned_manifest, simulator
from waiting import wait_for

pytestmark = pytest.mark.waits

[AUTOSCALER] = [
    document
    for document in guide.yamls((ROOT / "docs/guides/kubernetes.md").read_text())
    if document.get("kind") == "HorizontalPodAutoscaler"
]
# Kubernetes 1.20 has this version, with the same fields.
AUTOSCALERS = ApiResource("autoscaling/v2beta2", "horizontalpodautoscalers")
[METRIC] = AUTOSCALER["spec"]["metrics"]
NAME = METRIC["external"]["metric"]["name"]
VALUES = ApiResource("external.metrics.k8s.io/v1beta1", NAME)


def definition():
    """The definition of the metric: the API server's list of it equals an adapter's response."""
    fields = {name: {"type": "string"} for name in ("metricName", "timestamp", "value")}
    version = {
        "name": VALUES.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}},
    }
    names = {"kind": "ExternalMetricValue", "listKind": "ExternalMetricValueList", "plural": NAME}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{NAME}.{VALUES.group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, of a test"},
        },
        "spec": {
            "group": VALUES.group,
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }


@pytest.fixture
def set_metric(kubernetes, namespace) -> Callable[[int], None]:
    """Creates the metric with the value 0, and returns a function that sets it."""
    define(ApiServer(configuration(kubernetes.kubeconfig)), definition())
    path = VALUES.path(namespace.namespace)
    value = {"metricName": NAME, "timestamp": NOW, "value": "0"}
    type_fields = {"apiVersion": VALUES.api_version, "kind": "ExternalMetricValue"}
    namespace.call("POST", path, {**type_fields, "metadata": {"name": "only"}, **value})
    return lambda number: namespace.call("PATCH", f"{path}/only", {"value": str(number)})


def test_the_autoscaler_of_the_guide_stops_and_restarts_an_engine(namespace, start, set_metric):
    start()
    name = AUTOSCALER["spec"]["scaleTargetRef"]["name"]
    engine = engine_name(pinned_manifest(name).digest)
    namespace.create(simulator(name))

    def replicas():
        deployment = namespace.get("Deployment", engine)
        return deployment and deployment["spec"]["replicas"]

    wait_for(lambda: replicas() == 1)
    autoscaler = deepcopy(AUTOSCALER)
    autoscaler["metadata"]["namespace"] = namespace.namespace
    autoscaler["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] = 0
    namespace.call(
        "POST",
        AUTOSCALERS.path(namespace.namespace),
        autoscaler | {"apiVersion": AUTOSCALERS.api_version},
    )
    wait_for(lambda: replicas() == 0)
    set_metric(70)
    wait_for(lambda: replicas() == 3)
    set_metric(0)
    wait_for(lambda: replicas() == 0)
