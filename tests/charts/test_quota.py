"""Our pods on an API server with a namespace's limits.

Each is requested with `dryRun`, which applies the same checks.
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

GIVEN = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "2", "memory": "4Gi"}}
EVERYTHING = {
    "console": {"enabled": True},
    "backup": {"enabled": True},
    "definitions": {"upgrade": True},
}


@pytest.fixture(params=["a quota", "a quota and limits"])
def namespace(control_plane, request):
    """With the chart's accounts, and limits."""
    made = make.operator.new_namespace(control_plane)
    set_quota(made)
    if request.param == "a quota and limits":
        set_limits(made)
    accounts = f"/api/v1/namespaces/{made.namespace}/serviceaccounts/default"
    wait_for(lambda: has_token(made, accounts))
    return made


def has_token(namespace, path):
    """Whether pods of this account are taken."""
    try:
        return namespace.call("GET", path).get("secrets")
    except ClusterError:
        return False


def ask(namespace, spec):
    """For a pod of this spec; raises ClusterError where the namespace takes none."""
    pod = {"metadata": {"name": "asked"}, "spec": spec}
    path = f"/api/v1/namespaces/{namespace.namespace}/pods"
    query = [("dryRun", "All")]

    def is_taken():
        try:
            namespace.call("POST", path, pod, query=query)
        except ClusterError as error:
            if "No API token found" in str(error):  # an account that was just made
                return False
            raise
        return True

    wait_for(is_taken)


def mounted(spec):
    """With the volumes that a StatefulSet adds."""
    there = {each["name"] for each in spec["volumes"]}
    mounts = {mount["name"] for each in spec["containers"] for mount in each["volumeMounts"]}
    return spec | {
        "volumes": [*spec["volumes"], *({"name": name, "emptyDir": {}} for name in mounts - there)]
    }


def engine_pod(**placed):
    manifest, wanted = pinned_manifest(), serving(**placed)
    owner = simulator() | {"metadata": {"name": "one", "namespace": "worlds", "uid": "u1"}}
    pinned = PodSource(
        manifest.digest, manifest, manifest.engine, wanted, wanted.weights, "verifier"
    )
    [deployment] = [each for each in children(pinned, owner, 1) if each["kind"] == "Deployment"]
    return deployment["spec"]["template"]["spec"]


def test_a_namespace_with_a_quota_accepts_every_pod_of_the_chart(namespace):
    found = make.chart.objects(EVERYTHING, namespace=namespace.namespace)
    pods = make.chart.pods(found)
    assert len(pods) == 9
    for template in pods.values():
        ask(namespace, mounted(template["spec"]) | {"serviceAccountName": "default"})


def test_a_namespace_with_a_quota_accepts_an_engine_with_requests_and_limits(namespace):
    ask(namespace, engine_pod(resources=GIVEN))


def test_a_namespace_with_a_quota_refuses_an_engine_without_limits(namespace):
    missing = "must specify limits.cpu,limits.memory|must be less than or equal to"
    with pytest.raises(ClusterError, match=missing):
        ask(namespace, engine_pod(resources={"requests": GIVEN["requests"]}))


def test_a_namespace_with_a_quota_accepts_the_step_pod_of_a_multi_node_training(namespace):
    place = Place(nodes=Nodes(count=2)).own_pod
    container = {"name": "step", "image": "train", "resources": resources_of(place)}
    ask(namespace, {"containers": [container]})
