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
FULL_PLACE = PLACE.model_copy(update={"nodes": None})
BARE_PLACE = Place(image="x")


def job_of(place: Place = FULL_PLACE, **settings: str) -> dict:
    return step_job("agentworld-collect-0123456789abcdef", "collect", ARGUMENTS, place, **settings)


def pod(place: Place = FULL_PLACE, **settings: str) -> dict:
    return job_of(place, **settings)["spec"]["template"]["spec"]


@pytest.mark.parametrize("place", [FULL_PLACE, BARE_PLACE], ids=["whole", "bare"])
@pytest.mark.parametrize("profile", ["", "profiles/shells.json"])
def test_the_job_has_only_fields_of_kubernetes_types(place, profile):
    check(job_of(place, seccomp_profile=profile))


def test_the_job_has_its_queue_as_labels_and_its_step_as_annotations():
    metadata = job_of()["metadata"]
    assert metadata["name"] == "agentworld-collect-0123456789abcdef"
    assert metadata["labels"]["kueue.x-k8s.io/queue-name"] == "h100"
    assert metadata["labels"]["kueue.x-k8s.io/priority-class"] == "nightly"
    assert metadata["labels"]["app.kubernetes.io/component"] == "live-environments"
    digests = (BUILT, RESOURCES)
    annotations = {
        key: value for key, value in metadata["annotations"].items() if key not in digests
    }
    assert annotations == {
        "agentworld.dev/step": "collect",
        "agentworld.dev/recipe": "demo",
        "agentworld.dev/store": "/stores/demo",
    }
    assert "ownerReferences" not in metadata


def test_the_job_is_tried_once_with_a_deadline_and_a_time_to_live():
    spec = job_of()["spec"]
    assert spec["backoffLimit"] == 0
    assert spec["activeDeadlineSeconds"] == 1_209_600
    assert spec["ttlSecondsAfterFinished"] == 86_400
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    assert job_of(BARE_PLACE)["spec"]["activeDeadlineSeconds"] == 604_800


def test_the_container_runs_the_step_with_the_settings_of_its_place():
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


def test_the_pod_has_the_settings_of_its_place_and_no_service_account_token():
    spec = pod()
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["serviceAccountName"] == "trainer"
    assert spec["automountServiceAccountToken"] is False
    assert spec["nodeSelector"] == {"pool": "h100"}
    assert [toleration["operator"] for toleration in spec["tolerations"]] == ["Exists", "Equal"]
    assert spec["imagePullSecrets"] == [{"name": "mirror"}]
    assert spec["volumes"] == [
        {"name": "volume-0", "persistentVolumeClaim": {"claimName": "agentworld-stores"}},
        {"name": "volume-1", "persistentVolumeClaim": {"claimName": "models"}},
        {"name": "scratch", "emptyDir": {"sizeLimit": "200Gi"}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "10Gi"}},
    ]


@pytest.mark.parametrize("place", [FULL_PLACE, PLACE.model_copy(update={"nodes": Nodes(count=1)})])
def test_the_pod_has_the_labels_of_its_place(place):
    live = job_of(place)
    stage = stage_job("sft", ARGUMENTS, FOLDER, place)
    for job in (live, stage):
        assert job["spec"]["template"]["metadata"] == {"labels": PLACE.labels}
    assert "metadata" not in job_of(BARE_PLACE)["spec"]["template"]


def test_without_a_service_account_the_pod_uses_the_namespaces_default():
    assert "serviceAccountName" not in pod(BARE_PLACE)
    assert pod(BARE_PLACE)["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("store", "scratch", "limit"),
    [
        ("/stores/demo", None, "10Gi"),
        ("s3://worlds/demo", "50Gi", "10Gi"),
        ("s3://worlds/demo", None, "200Gi"),
    ],
)
def test_the_tmp_volume_is_limited_and_larger_for_a_working_copy(store, scratch, limit):
    place = BARE_PLACE.model_copy(update={"scratch": scratch})
    live = step_job("a-name", "collect", ["demo", store], place)
    stage = stage_job("sft", ["demo", store], FOLDER, place)
    for job in (live, stage):
        volumes = job["spec"]["template"]["spec"]["volumes"]
        assert volumes[-1] == {"name": "tmp", "emptyDir": {"sizeLimit": limit}}


def test_a_claim_at_tmp_replaces_the_tmp_volume():
    spec = pod(BARE_PLACE.model_copy(update={"volumes": {"scratch": "/tmp"}}))
    (container,) = spec["containers"]
    assert container["volumeMounts"] == [{"name": "volume-0", "mountPath": "/tmp"}]


def test_the_seccomp_profile_is_set_only_if_given():
    assert "seccompProfile" not in str(pod())
    (container,) = pod(seccomp_profile="profiles/shells.json")["containers"]
    assert container["securityContext"]["seccompProfile"] == {
        "type": "Localhost",
        "localhostProfile": "profiles/shells.json",
    }


def test_a_job_built_differently_has_the_same_name_and_another_digest():
    other = job_of(BARE_PLACE)
    assert other["metadata"]["name"] == job_of()["metadata"]["name"]
    assert other["metadata"]["annotations"][BUILT] != job_of()["metadata"]["annotations"][BUILT]
    assert job_of()["metadata"]["annotations"][BUILT] == job_of()["metadata"]["annotations"][BUILT]


def test_the_pod_of_a_job_is_selected_by_its_job_name_label():
    assert pod_of_job("a-name").selector == "job-name=a-name"


def test_a_stage_on_one_node_is_a_torchrun_job_with_the_settings_of_its_place():
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
