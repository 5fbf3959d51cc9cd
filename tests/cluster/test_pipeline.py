"""A whole pipeline on real nodes: each component is a pod of our image, by what was compiled."""

import pytest
from kubernetes import client

import images
import make_pipelines
from agentworld_pipelines.placement import Place, Placement, Retries
from pod_pipeline import Job, PodPipeline, Ran
from waiting import wait_for

pytestmark = pytest.mark.slow

NAMESPACE = "training"
CLAIM = "stores"
STORE = "/stores/smoke"


@pytest.fixture(scope="module")
def job(cluster, tmp_path_factory) -> Job:
    folder = tmp_path_factory.mktemp("pipeline")
    for each in ("stores", "outputs"):
        (folder / each).mkdir()
        (folder / each).chmod(0o777)
    for node in cluster.nodes:
        node.load(images.built("train"))
    core = client.CoreV1Api(cluster.client)
    core.create_namespace({"metadata": {"name": NAMESPACE}})
    wait_for(lambda: core.list_namespaced_service_account(NAMESPACE).items)
    claim(core, folder / "stores")
    return Job(core, NAMESPACE, "job-1", folder / "outputs")


def claim(core: client.CoreV1Api, folder) -> None:
    """A folder that all nodes mount."""
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "of-the-tests",
        "claimRef": {"name": CLAIM, "namespace": NAMESPACE},
        "hostPath": {"path": str(folder)},
    }
    core.create_persistent_volume({"metadata": {"name": f"{NAMESPACE}-{CLAIM}"}, "spec": spec})
    wanted = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "of-the-tests",
        "resources": {"requests": {"storage": "10Gi"}},
    }
    core.create_namespaced_persistent_volume_claim(
        NAMESPACE, {"metadata": {"name": CLAIM}, "spec": wanted}
    )


@pytest.fixture(scope="module")
def ran(job) -> Ran:
    image = images.built("train").name
    default = Place(
        volumes={CLAIM: "/stores"},
        environment={"OMP_NUM_THREADS": "1"},
        retries=Retries(times=1),
    )
    compiled = make_pipelines.compiled("world_model", Placement(image=image, default=default))
    return PodPipeline(job, compiled).run(recipe="smoke", store=STORE)


def test_every_component_runs_as_a_pod_and_succeeds(ran):
    assert set(ran.states.values()) == {"SUCCEEDED"}, ran
