"""The TrainJob of a stage: its whole placement, by the types of Kubeflow's Trainer."""

from pathlib import Path

import pytest

from agentworld.cluster.records.serving import Toleration
from agentworld_pipelines.job_parts import BUILT, name_of
from agentworld_pipelines.placement import Nodes, Place
from agentworld_pipelines.train_job import train_job
from fakes.job_set import job_set, typed
from make.places import PLACE

FOLDER = Path("/stores/demo/steps/sft/0123456789abcdef")
ARGUMENTS = ["demo", "/stores/demo", "/stores/demo/data", "/stores/demo/cpt"]


def job_of(place: Place = PLACE, folder: Path = FOLDER) -> dict:
    return train_job("sft", ARGUMENTS, folder, place)


def patches(job: dict) -> dict[str, dict]:
    """The pod of each replicated job."""
    (patch,) = job["spec"]["runtimePatches"]
    assert patch["manager"] == "agentworld.dev/pipelines"
    jobs = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    return {item["name"]: item["template"]["spec"]["template"]["spec"] for item in jobs}


@pytest.mark.compute
@pytest.mark.parametrize(
    "place", [PLACE, Place(image="x", nodes=Nodes(count=2))], ids=["all", "bare"]
)
def test_the_train_job_has_only_fields_of_the_trainers_types(place):
    assert typed("TrainerV1alpha1TrainJob", job_of(place)) == job_of(place)


def test_the_job_set_has_a_pod_for_each_node_with_the_settings_of_the_place():
    (node_job,) = job_set(job_of())["spec"]["replicatedJobs"]
    job = node_job["template"]["spec"]
    assert (node_job["name"], job["completions"], job["parallelism"]) == ("node", 2, 2)
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    assert container["name"] == "node"
    assert container["command"] == ["torchrun", "--nproc-per-node=8", "--shutdown-timeout=300"]
    assert {"name": "PET_NNODES", "value": "2"} in container["env"]
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {
        *PLACE.volumes.values(),
        "/tmp/agentworld",
        "/dev/shm",
    }
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in pod["volumes"]
    }
    assert pod["nodeSelector"] == PLACE.node_selector


def test_the_train_job_has_its_queue_as_labels_and_its_stage_as_annotations():
    metadata = job_of()["metadata"]
    assert metadata["labels"]["kueue.x-k8s.io/queue-name"] == "h100"
    assert metadata["labels"]["kueue.x-k8s.io/priority-class"] == "nightly"
    assert metadata["labels"]["app.kubernetes.io/part-of"] == "agentworld"
    annotations = {key: value for key, value in metadata["annotations"].items() if key != BUILT}
    assert annotations == {
        "agentworld.dev/step": "sft",
        "agentworld.dev/recipe": "demo",
        "agentworld.dev/store": "/stores/demo",
    }
    assert "ownerReferences" not in metadata


def test_every_node_starts_a_process_for_each_device():
    assert job_of()["spec"]["runtimeRef"]["name"] == "torch-distributed"
    assert job_of()["spec"]["activeDeadlineSeconds"] == 1_209_600
    assert job_of()["spec"]["trainer"] == {
        "image": "mirror.example/agentworld:7",
        "command": ["torchrun", "--nproc-per-node=8", "--shutdown-timeout=300"],
        "args": ["-m", "agentworld.steps.member", "sft", *ARGUMENTS],
        "numNodes": 2,
        "numProcPerNode": 8,
        "resourcesPerNode": {
            "requests": {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8"},
            "limits": {"memory": "512Gi", "nvidia.com/gpu": "8"},
        },
        "env": [
            {"name": "OMP_NUM_THREADS", "value": "4"},
            {
                "name": "AWS_ACCESS_KEY_ID",
                "valueFrom": {"secretKeyRef": {"name": "bucket", "key": "access_key"}},
            },
        ],
    }


def test_the_pods_of_the_nodes_have_the_settings_and_mounts_of_the_place():
    assert patches(job_of()) == {
        "node": {
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "runAsGroup": 65532,
                "fsGroup": 65532,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "terminationGracePeriodSeconds": 330,
            "nodeSelector": {"pool": "h100"},
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {
                    "key": "spot",
                    "operator": "Equal",
                    "value": "true",
                    "effect": "NoExecute",
                    "tolerationSeconds": 0,
                },
            ],
            "imagePullSecrets": [{"name": "mirror"}],
            "serviceAccountName": "trainer",
            "volumes": [
                {
                    "name": "volume-0",
                    "persistentVolumeClaim": {"claimName": "agentworld-stores"},
                },
                {"name": "volume-1", "persistentVolumeClaim": {"claimName": "models"}},
                {"name": "scratch", "emptyDir": {"sizeLimit": "200Gi"}},
                {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
            ],
            "containers": [
                {
                    "name": "node",
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    "volumeMounts": [
                        {"name": "volume-0", "mountPath": "/stores"},
                        {"name": "volume-1", "mountPath": "/models"},
                        {"name": "scratch", "mountPath": "/tmp/agentworld"},
                        {"name": "shared-memory", "mountPath": "/dev/shm"},
                    ],
                }
            ],
        }
    }


def test_the_pods_have_the_labels_of_the_place():
    (node_job,) = job_set(job_of())["spec"]["replicatedJobs"]
    labels = node_job["template"]["spec"]["template"]["metadata"]["labels"]
    assert PLACE.labels.items() <= labels.items()
    (patch,) = job_of(Place(image="x", nodes=Nodes(count=2)))["spec"]["runtimePatches"]
    assert "metadata" not in str(patch)


def test_without_a_service_account_the_runtimes_account_is_kept():
    bare = Place(image="x", nodes=Nodes(count=2))
    assert "serviceAccountName" not in patches(job_of(bare))["node"]


def test_a_toleration_without_a_key_is_passed_on_without_a_key():
    place = PLACE.model_copy(update={"tolerations": (Toleration(operator="Exists"),)})
    assert patches(job_of(place))["node"]["tolerations"] == [{"operator": "Exists"}]


def test_the_name_of_a_train_job_depends_on_its_folder_and_its_store():
    assert job_of()["metadata"]["name"] == name_of("sft", str(FOLDER))
    assert len(name_of("sft", str(FOLDER))) == len("agentworld-sft-") + 16
    assert name_of("sft", str(Path("/other") / FOLDER.name)) != name_of("sft", str(FOLDER))


def test_a_train_job_built_differently_has_the_same_name_and_another_digest():
    other = job_of(PLACE.model_copy(update={"nodes": Nodes(count=3)}))
    assert other["metadata"]["name"] == job_of()["metadata"]["name"]
    assert other["metadata"]["annotations"][BUILT] != job_of()["metadata"]["annotations"][BUILT]
    assert job_of()["metadata"]["annotations"][BUILT] == job_of()["metadata"]["annotations"][BUILT]
