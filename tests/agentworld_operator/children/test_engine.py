import json

import pytest

from agentworld.cluster.names import child_labels, engine_name
from agentworld_operator.children.engine import children
from agentworld_operator.children.pod import EnginePods, PodSource
from agentworld_operator.policy.drift import is_as_built
from machines.kubernetes_types import check_schema
from make import records
from make.simulator import IMAGE, pinned_manifest, serving, simulator

MANIFEST = pinned_manifest()
OWNER = simulator() | {"metadata": {"name": "one", "namespace": "worlds", "uid": "u1"}}


def built(replicas=2, engine=None, pods=None, **changes):
    wanted = serving(**changes)
    engine = engine or MANIFEST.engine
    pinned = PodSource(
        MANIFEST.digest, MANIFEST, engine, wanted, wanted.weights, "verifier@sha256:1"
    )
    pinned = pinned._replace(pods=pods or EnginePods())
    return {each["kind"]: each for each in children(pinned, OWNER, replicas)}


def pod(**changes):
    return built(**changes)["Deployment"]["spec"]["template"]["spec"]


def container(**changes):
    return pod(**changes)["containers"][0]


@pytest.mark.compute
def test_every_child_is_valid_in_every_supported_kubernetes():
    pool = {"selector": {"gpu": "a"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
    placed = {"nodePool": pool, "resources": {"limits": {"nvidia.com/gpu": 1}}, "queue": "team"}
    for child in built(**placed).values():
        check_schema(child)


def test_children_are_named_by_the_digest_and_owned_by_the_simulator():
    for child in built().values():
        metadata = child["metadata"]
        assert metadata["name"] == engine_name(MANIFEST.digest)
        assert metadata["namespace"] == "worlds"
        assert [owner["uid"] for owner in metadata["ownerReferences"]] == ["u1"]


def test_the_disruption_budget_allows_one_eviction_and_any_unready_pod():
    budget = built()["PodDisruptionBudget"]["spec"]
    selected = budget.pop("selector")["matchLabels"]
    assert budget == {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    pods = built()["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert selected.items() <= pods.items()


def test_names_and_labels_fit_the_kubernetes_limit():
    for child in built().values():
        metadata = child["metadata"]
        words = [metadata["name"], *metadata["labels"].values()]
        assert max(map(len, words)) <= 63


def test_the_image_is_pinned_by_the_manifests_digest():
    assert container()["image"] == f"{IMAGE}@{records.digest('image')}"


def test_the_engine_starts_with_pinned_and_verified_arguments():
    found = container()
    assert found["args"][-4:] == ["--dtype", "float32", "--max-model-len", "1024"]
    assert "/weights/world" in found["args"]
    assert "cat /verified/arguments" in found["command"][2]
    assert MANIFEST.digest not in json.dumps(found)


def test_the_engine_has_the_pinned_and_the_common_environment():
    told = {each["name"]: each["value"] for each in container()["env"]}
    environment = {"VLLM_BATCH_INVARIANT": "1"}
    engine = MANIFEST.engine.model_copy(update={"environment": environment})
    pinned = {each["name"]: each["value"] for each in container(engine=engine)["env"]}
    assert pinned == told | environment
    assert told["HF_HUB_OFFLINE"] == "1"


def test_the_verifier_reads_the_canonical_manifest():
    assert built()["ConfigMap"]["data"]["manifest.json"].encode() == MANIFEST.canonical


def test_weights_of_a_claim_are_read_only_in_every_container():
    weights = next(each for each in pod()["volumes"] if each["name"] == "weights")
    assert weights["persistentVolumeClaim"] == {"claimName": "weights", "readOnly": True}
    for each in (*pod()["initContainers"], *pod()["containers"]):
        mount = next(mount for mount in each["volumeMounts"] if mount["name"] == "weights")
        assert mount["readOnly"]


def test_only_the_verifier_fetches_weights_of_a_url():
    fetching = {"weights": {"url": "s3://models/world", "secret": "bucket"}}
    verifier = pod(**fetching)["initContainers"][0]
    told = {each["name"]: each["value"] for each in verifier["env"]}
    assert told["AGENTWORLD_WEIGHTS_URL"] == "s3://models/world"
    assert verifier["envFrom"] == [{"secretRef": {"name": "bucket"}}]
    mounts = {each["name"]: each for each in container(**fetching)["volumeMounts"]}
    assert mounts["weights"]["readOnly"]
    assert "envFrom" not in container(**fetching)


def weights_of(**weights):
    """The volume, and whether the verifier and the engine may write to it."""
    spec = pod(weights=weights)
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    mounts = [
        mount
        for container in (*spec["initContainers"], *spec["containers"])
        for mount in container["volumeMounts"]
        if mount["name"] == "weights"
    ]
    return volumes["weights"], ["readOnly" not in mount for mount in mounts]


def test_fetched_weights_are_cached_on_a_named_claim():
    weights = {"url": "s3://models/world", "cache": "models"}
    volume, is_writable = weights_of(**weights)
    assert volume["persistentVolumeClaim"] == {"claimName": "models"}
    assert is_writable == [True, False]
    spec = pod(weights=weights)
    verifier = spec["initContainers"][0]
    environment = {variable["name"]: variable["value"] for variable in verifier["env"]}
    folder = f"/weights/{MANIFEST.artifact.removeprefix('sha256:')}"
    assert environment["AGENTWORLD_WEIGHTS_SHARED"] == "true"
    assert environment["AGENTWORLD_MODEL_FOLDER"] == folder
    assert folder in spec["containers"][0]["args"]


def test_weights_in_an_image_are_a_read_only_volume():
    image = f"mirror.example/world@sha256:{'0' * 64}"
    volume, is_writable = weights_of(image=image, path="model")
    assert volume["image"] == {"reference": image, "pullPolicy": "IfNotPresent"}
    assert is_writable == [False, False]
    assert "/weights/model" in container(weights={"image": image, "path": "model"})["args"]


def test_every_emptydir_volume_has_a_size_limit():
    weights = {"url": "s3://models/world", "sizeLimit": "90Gi"}
    volumes = pod(weights=weights, scratch="20Gi", sharedMemory="32Gi")["volumes"]
    limits = {
        volume["name"]: volume["emptyDir"]["sizeLimit"]
        for volume in volumes
        if "emptyDir" in volume
    }
    assert limits == {"verified": "1Mi", "weights": "90Gi", "tmp": "20Gi", "shm": "32Gi"}


def test_every_container_meets_the_restricted_pod_security_standard():
    spec = pod()
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    for each in (*spec["initContainers"], *spec["containers"]):
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }


def test_the_verifier_has_fixed_resources_and_the_engine_the_configured_resources():
    [verifier] = pod()["initContainers"]
    assert {*verifier["resources"]} == {"requests", "limits"}
    for amounts in verifier["resources"].values():
        assert amounts.keys() == {"cpu", "memory"}
    devices = {"limits": {"nvidia.com/gpu": 1}}
    told = {"requests": {}, "limits": {"nvidia.com/gpu": "1"}}
    assert container(resources=devices)["resources"] == told
    assert pod(resources=devices)["initContainers"] == [verifier]


def test_the_startup_probe_allows_the_configured_seconds():
    probe = container(startupSeconds=3_601)["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 3_601


def test_the_node_pool_and_the_queue_are_set_on_the_deployment_and_its_pods():
    toleration = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    pool = {"selector": {"pool": "gpu"}, "tolerations": [toleration]}
    children_ = built(nodePool=pool, queue="team")
    spec = children_["Deployment"]["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"pool": "gpu"}
    assert spec["tolerations"] == [toleration]
    deployment = children_["Deployment"]
    # The Deployment's for Kueue's integration `deployment`, the pods' for its integration `pod`.
    for labelled in (deployment, deployment["spec"]["template"]):
        assert labelled["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"
    assert "kueue" not in json.dumps(built())


def test_an_engine_has_a_shared_memory_volume():
    memory = {"medium": "Memory", "sizeLimit": "8Gi"}
    assert {"name": "shm", "emptyDir": memory} in pod()["volumes"]
    mounted = {"name": "shm", "mountPath": "/dev/shm"}
    assert mounted in container()["volumeMounts"]


def test_images_are_pulled_with_the_secrets_of_the_release():
    wanted = serving()
    pinned = PodSource(
        MANIFEST.digest, MANIFEST, MANIFEST.engine, wanted, wanted.weights, "verifier"
    )
    [deployment] = [
        each
        for each in children(pinned._replace(pull_secrets=("mirror",)), OWNER, 1)
        if each["kind"] == "Deployment"
    ]
    told = deployment["spec"]["template"]["spec"]
    assert told["imagePullSecrets"] == [{"name": "mirror"}]
    assert "imagePullSecrets" not in pod()


def test_the_engine_service_is_headless():
    assert built()["Service"]["spec"]["clusterIP"] == "None"


def test_a_node_pool_removed_from_the_spec_is_drift_of_the_deployment():
    """`is_as_built` ignores missing fields, because it accepts other users' additions."""
    bare, placed = built(), built(nodePool={"selector": {"pool": "gpu"}})
    assert not is_as_built(bare["Deployment"], placed["Deployment"])
    assert is_as_built(bare["Service"], placed["Service"])


def test_pods_have_the_service_account_labels_and_annotations_of_the_release():
    told = {"azure.workload.identity/use": "true", "app.kubernetes.io/name": "somebody"}
    annotations = {"eks.amazonaws.com/skip-containers": "engine"}
    pods = EnginePods(
        service_account="reader", labels=told, annotations=annotations, priority_class="high"
    )
    template = built(pods=pods)["Deployment"]["spec"]["template"]
    labels = template["metadata"]["labels"]
    assert labels == told | child_labels(MANIFEST.digest)
    assert template["metadata"]["annotations"] == annotations
    spec = template["spec"]
    assert (spec["serviceAccountName"], spec["priorityClassName"]) == ("reader", "high")
    assert spec["automountServiceAccountToken"] is False
    assert not {"serviceAccountName", "priorityClassName"} & pod().keys()


def test_equal_specs_build_equal_children():
    assert built() == built()


def test_tenants_do_not_change_the_children():
    assert built(tenants=["acme"]) == built()
