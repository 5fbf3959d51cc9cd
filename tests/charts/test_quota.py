"""Our pods on an API server with a namespace's limits.

Each pod is requested with `dryRun`, which applies the same checks.
"""

import pytest

import make.chart
import make.operator
from agentworld.errors import ClusterError
from agentworld_operator.children.engine import children
from agentworld_operator.children.pod import PodSource
from agentworld_pipelines.job_parts import resources_of
from agentworld_pipelines.placement import Nodes, Place
from make.bounds import set_limits, set_quota
from make.simulator import pinned_manifest, serving, simulator
from waiting import wait_for

pytestmark = pytest.mark.waits

RESOURCES = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "2", "memory": "4Gi"}}
EVERYTHING = {
    "console": {"enabled": True},
    "backup": {"enabled": True},
    "definitions": {"upgrade": True},
}


@pytest.fixture(params=["a quota", "a quota and limits"])
def namespace(control_plane, request):
    """A namespace with a quota, and with limits where the parameter says so."""
    new_namespace = make.operator.new_namespace(control_plane)
    set_quota(new_namespace)
    if request.param == "a quota and limits":
        set_limits(new_namespace)
    accounts = f"/api/v1/namespaces/{new_namespace.namespace}/serviceaccounts/default"
    wait_for(lambda: has_token(new_namespace, accounts))
    return new_namespace


def has_token(namespace, path):
    """Whether the server accepts pods of this account."""
    try:
        return namespace.call("GET", path).get("secrets")
    except ClusterError:
        return False


def request_pod(namespace, spec):
    """Requests a pod with this spec; raises ClusterError if the namespace refuses it."""
    pod = {"metadata": {"name": "asked"}, "spec": spec}
    path = f"/api/v1/namespaces/{namespace.namespace}/pods"
    query = [("dryRun", "All")]

    def is_accepted():
        try:
            namespace.call("POST", path, pod, query=query)
        except ClusterError as error:
            if "No API token found" in str(error):  # a new account
                return False
            raise
        return True

    wait_for(is_accepted)


def with_volumes(spec):
    """The spec with the volumes that a StatefulSet adds."""
    volume_names = {volume["name"] for volume in spec["volumes"]}
    mounts = {
        mount["name"] for container in spec["containers"] for mount in container["volumeMounts"]
    }
    return spec | {
        "volumes": [
            *spec["volumes"],
            *({"name": name, "emptyDir": {}} for name in mounts - volume_names),
        ]
    }


def engine_pod(**fields):
    manifest, serving_spec = pinned_manifest(), serving(**fields)
    owner = simulator() | {"metadata": {"name": "one", "namespace": "worlds", "uid": "u1"}}
    source = PodSource(
        manifest.digest, manifest, manifest.engine, serving_spec, serving_spec.weights, "verifier"
    )
    [deployment] = [child for child in children(source, owner, 1) if child["kind"] == "Deployment"]
    return deployment["spec"]["template"]["spec"]


def test_a_namespace_with_a_quota_accepts_every_pod_of_the_chart(namespace):
    objects = make.chart.objects(EVERYTHING, namespace=namespace.namespace)
    pods = make.chart.pods(objects)
    assert len(pods) == 9
    for template in pods.values():
        request_pod(namespace, with_volumes(template["spec"]) | {"serviceAccountName": "default"})


def test_a_namespace_with_a_quota_accepts_an_engine_with_requests_and_limits(namespace):
    request_pod(namespace, engine_pod(resources=RESOURCES))


def test_a_namespace_with_a_quota_refuses_an_engine_without_limits(namespace):
    message = "must specify limits.cpu,limits.memory|must be less than or equal to"
    with pytest.raises(ClusterError, match=message):
        request_pod(namespace, engine_pod(resources={"requests": RESOURCES["requests"]}))


def test_a_namespace_with_a_quota_accepts_the_step_pod_of_a_multi_node_training(namespace):
    place = Place(nodes=Nodes(count=2)).own_pod
    container = {"name": "step", "image": "train", "resources": resources_of(place)}
    request_pod(namespace, {"containers": [container]})
