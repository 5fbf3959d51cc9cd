"""The Job of a step with live shells: its whole placement, in a pod that can have a sandbox."""

from pathlib import Path

import pytest

from agentworld.cluster.names import BUILT, RESOURCES
from agentworld_pipelines.job_parts import name_of
from agentworld_pipelines.placement import Nodes, Place
from agentworld_pipelines.step_job import pod_of_job, stage_job, step_job
from machines.kubernetes_types import check
from make.places import PLACE

ARGUMENTS = ["demo", "/stores/demo"]
FOLDER = Path("/stores/demo/steps/sft/0123456789abcdef")
WHOLE = PLACE.model_copy(update={"nodes": None})
BARE = Place(image="x")


def built(place: Place = WHOLE, **told: str) -> dict:
    return step_job("agentworld-collect-0123456789abcdef", "collect", ARGUMENTS, place, **told)


def pod(place: Place = WHOLE, **told: str) -> dict:
    return built(place, **told)["spec"]["template"]["spec"]


@pytest.mark.parametrize("place", [WHOLE, BARE], ids=["whole", "bare"])
@pytest.mark.parametrize("profile", ["", "profiles/shells.json"])
def test_it_is_of_kubernetes_own_types_and_nothing_of_it_is_unknown_to_them(place, profile):
    check(built(place, seccomp_profile=profile))


def test_it_is_queued_and_tells_what_it_does():
    metadata = built()["metadata"]
    assert metadata["name"] == "agentworld-collect-0123456789abcdef"
    assert metadata["labels"]["kueue.x-k8s.io/queue-name"] == "h100"
    assert metadata["labels"]["kueue.x-k8s.io/priority-class"] == "nightly"
    assert metadata["labels"]["app.kubernetes.io/component"] == "live-environments"
    digests = (BUILT, RESOURCES)
    told = {key: value for key, value in metadata["annotations"].items() if key not in digests}
    assert told == {
        "agentworld.dev/step": "collect",
        "agentworld.dev/recipe": "demo",
        "agentworld.dev/store": "/stores/demo",
    }
    assert "ownerReferences" not in metadata


def test_it_is_tried_once_and_neither_runs_nor_stays_for_ever():
    spec = built()["spec"]
    assert spec["backoffLimit"] == 0
    assert spec["activeDeadlineSeconds"] == 1_209_600
    assert spec["ttlSecondsAfterFinished"] == 86_400
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    assert built(BARE)["spec"]["activeDeadlineSeconds"] == 604_800


def test_its_container_is_the_step_with_what_its_place_gives():
    (container,) = pod()["containers"]
    security = container.pop("securityContext")
    assert container == {
        "name": "step",
        "image": "mirror.example/agentworld:7",
        "command": ["python", "-m", "agentworld_pipelines.live_step"],
        "args": ["collect", *ARGUMENTS],
        "env": [
            {"name": "OMP_NUM_THREADS", "value": "4"},
            {
                "name": "AWS_ACCESS_KEY_ID",
                "valueFrom": {"secretKeyRef": {"name": "bucket", "key": "access_key"}},
            },
        ],
        "resources": {
            "requests": {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8"},
            "limits": {"memory": "512Gi", "nvidia.com/gpu": "8"},
        },
        "volumeMounts": [
            {"name": "volume-0", "mountPath": "/stores"},
            {"name": "volume-1", "mountPath": "/models"},
            {"name": "scratch", "mountPath": "/tmp/agentworld"},
            {"name": "shared-memory", "mountPath": "/dev/shm"},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    assert security == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_its_pod_is_where_its_place_says_with_its_account_and_no_token_of_the_cluster():
    told = pod()
    assert told["securityContext"]["runAsNonRoot"]
    assert told["serviceAccountName"] == "trainer"
    assert told["automountServiceAccountToken"] is False
    assert told["nodeSelector"] == {"pool": "h100"}
    assert [each["operator"] for each in told["tolerations"]] == ["Exists", "Equal"]
    assert told["imagePullSecrets"] == [{"name": "mirror"}]
    assert told["volumes"] == [
        {"name": "volume-0", "persistentVolumeClaim": {"claimName": "agentworld-stores"}},
        {"name": "volume-1", "persistentVolumeClaim": {"claimName": "models"}},
        {"name": "scratch", "emptyDir": {"sizeLimit": "200Gi"}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "10Gi"}},
    ]


@pytest.mark.parametrize("place", [WHOLE, PLACE.model_copy(update={"nodes": Nodes(count=1)})])
def test_its_pod_has_the_labels_of_its_place(place):
    live = built(place)
    stage = stage_job("sft", ARGUMENTS, FOLDER, place)
    for job in (live, stage):
        assert job["spec"]["template"]["metadata"] == {"labels": PLACE.labels}
    assert "metadata" not in built(BARE)["spec"]["template"]


def test_without_an_account_of_its_place_it_has_that_of_the_namespace():
    assert "serviceAccountName" not in pod(BARE)
    assert pod(BARE)["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("store", "scratch", "limit"),
    [
        ("/stores/demo", None, "10Gi"),
        ("s3://worlds/demo", "50Gi", "10Gi"),
        ("s3://worlds/demo", None, "200Gi"),
    ],
)
def test_its_own_files_have_a_limit_and_more_where_a_working_copy_is_among_them(
    store, scratch, limit
):
    place = BARE.model_copy(update={"scratch": scratch})
    live = step_job("a-name", "collect", ["demo", store], place)
    stage = stage_job("sft", ["demo", store], FOLDER, place)
    for job in (live, stage):
        volumes = job["spec"]["template"]["spec"]["volumes"]
        assert volumes[-1] == {"name": "tmp", "emptyDir": {"sizeLimit": limit}}


def test_a_claim_at_tmp_is_mounted_there_and_nothing_else():
    told = pod(BARE.model_copy(update={"volumes": {"scratch": "/tmp"}}))
    (container,) = told["containers"]
    assert container["volumeMounts"] == [{"name": "volume-0", "mountPath": "/tmp"}]


def test_no_seccomp_profile_is_told_but_one_that_the_nodes_have():
    assert "seccompProfile" not in str(pod())
    (container,) = pod(seccomp_profile="profiles/shells.json")["containers"]
    assert container["securityContext"]["seccompProfile"] == {
        "type": "Localhost",
        "localhostProfile": "profiles/shells.json",
    }


def test_whatever_is_built_otherwise_says_so_under_the_same_name():
    other = built(BARE)
    assert other["metadata"]["name"] == built()["metadata"]["name"]
    assert other["metadata"]["annotations"][BUILT] != built()["metadata"]["annotations"][BUILT]
    assert built()["metadata"]["annotations"][BUILT] == built()["metadata"]["annotations"][BUILT]


def test_its_pod_is_found_by_the_label_that_kubernetes_gives_it():
    assert pod_of_job("a-name").selector == "job-name=a-name"


def test_a_stage_on_one_node_is_a_job_of_torchrun_with_what_its_place_gives():
    place = PLACE.model_copy(update={"nodes": Nodes(count=1)})
    job = stage_job("sft", [*ARGUMENTS, "/stores/demo/data"], FOLDER, place)
    check(job)
    assert job["metadata"]["name"] == name_of("sft", str(FOLDER))
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "h100"
    assert job["metadata"]["labels"]["app.kubernetes.io/component"] == "training"
    (container,), (live,) = job["spec"]["template"]["spec"]["containers"], pod()["containers"]
    assert container["command"] == ["torchrun", "--nproc-per-node=8", "--shutdown-timeout=300"]
    member = ["-m", "agentworld.steps.member", "sft", *ARGUMENTS, "/stores/demo/data"]
    assert container["args"] == member
    for field in ("image", "env", "resources", "volumeMounts", "securityContext"):
        assert container[field] == live[field]
    for field in ("serviceAccountName", "automountServiceAccountToken"):
        assert job["spec"]["template"]["spec"][field] == pod()[field]
