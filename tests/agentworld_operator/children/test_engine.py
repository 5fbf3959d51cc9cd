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


def build(replicas=2, engine=None, pods=None, **changes):
    serving_spec = serving(**changes)
    engine = engine or MANIFEST.engine
    source = PodSource(
        MANIFEST.digest, MANIFEST, engine, serving_spec, serving_spec.weights, "verifier@sha256:1"
    )
    source = source._replace(pods=pods or EnginePods())
    return {child["kind"]: child for child in children(source, OWNER, replicas)}


def pod(**changes):
    return build(**changes)["Deployment"]["spec"]["template"]["spec"]


def container(**changes):
    return pod(**changes)["containers"][0]


@pytest.mark.compute
def test_every_child_is_valid_in_every_supported_kubernetes():
    pool = {"selector": {"gpu": "a"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
    fields = {"nodePool": pool, "resources": {"limits": {"nvidia.com/gpu": 1}}, "queue": "team"}
    for child in build(**fields).values():
        check_schema(child)


def test_children_are_named_by_the_digest_and_owned_by_the_simulator():
    for child in build().values():
        metadata = child["metadata"]
        assert metadata["name"] == engine_name(MANIFEST.digest)
        assert metadata["namespace"] == "worlds"
        assert [owner["uid"] for owner in metadata["ownerReferences"]] == ["u1"]


def test_the_disruption_budget_allows_one_eviction_and_any_unready_pod():
    budget = build()["PodDisruptionBudget"]["spec"]
    selector = budget.pop("selector")["matchLabels"]
    assert budget == {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    pod_labels = build()["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert selector.items() <= pod_labels.items()


def test_names_and_labels_fit_the_kubernetes_limit():
    for child in build().values():
        metadata = child["metadata"]
        names = [metadata["name"], *metadata["labels"].values()]
        assert max(map(len, names)) <= 63


def test_the_image_is_pinned_by_the_manifests_digest():
    assert container()["image"] == f"{IMAGE}@{records.digest('image')}"


def test_the_engine_starts_with_pinned_and_verified_arguments():
    engine = container()
    assert engine["args"][-4:] == ["--dtype", "float32", "--max-model-len", "1024"]
    assert "/weights/world" in engine["args"]
    assert "cat /verified/arguments" in engine["command"][2]
    assert MANIFEST.digest not in json.dumps(engine)


def test_the_engine_has_the_pinned_and_the_common_environment():
    common = {variable["name"]: variable["value"] for variable in container()["env"]}
    environment = {"VLLM_BATCH_INVARIANT": "1"}
    engine = MANIFEST.engine.model_copy(update={"environment": environment})
    variables = {
        variable["name"]: variable["value"] for variable in container(engine=engine)["env"]
    }
    assert variables == common | environment
    assert common["HF_HUB_OFFLINE"] == "1"


def test_the_verifier_reads_the_canonical_manifest():
    assert build()["ConfigMap"]["data"]["manifest.json"].encode() == MANIFEST.canonical


def test_weights_of_a_claim_are_read_only_in_every_container():
    weights = next(volume for volume in pod()["volumes"] if volume["name"] == "weights")
    assert weights["persistentVolumeClaim"] == {"claimName": "weights", "readOnly": True}
    for pod_container in (*pod()["initContainers"], *pod()["containers"]):
        mount = next(mount for mount in pod_container["volumeMounts"] if mount["name"] == "weights")
        assert mount["readOnly"]


def test_only_the_verifier_fetches_weights_of_a_url():
    fields = {"weights": {"url": "s3://models/world", "secret": "bucket"}}
    verifier = pod(**fields)["initContainers"][0]
    variables = {variable["name"]: variable["value"] for variable in verifier["env"]}
    assert variables["AGENTWORLD_WEIGHTS_URL"] == "s3://models/world"
    assert verifier["envFrom"] == [{"secretRef": {"name": "bucket"}}]
    mounts = {mount["name"]: mount for mount in container(**fields)["volumeMounts"]}
    assert mounts["weights"]["readOnly"]
    assert "envFrom" not in container(**fields)


def weights_of(**weights):
    """The volume, and whether the verifier and the engine may write to it."""
    spec = pod(weights=weights)
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    mounts = [
        mount
        for pod_container in (*spec["initContainers"], *spec["containers"])
        for mount in pod_container["volumeMounts"]
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
    for pod_container in (*spec["initContainers"], *spec["containers"]):
        assert pod_container["securityContext"] == {
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
    resources = {"requests": {}, "limits": {"nvidia.com/gpu": "1"}}
    assert container(resources=devices)["resources"] == resources
    assert pod(resources=devices)["initContainers"] == [verifier]


def test_the_startup_probe_allows_the_configured_seconds():
    probe = container(startupSeconds=3_601)["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 3_601


def test_the_node_pool_and_the_queue_are_set_on_the_deployment_and_its_pods():
    toleration = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    pool = {"selector": {"pool": "gpu"}, "tolerations": [toleration]}
    built_children = build(nodePool=pool, queue="team")
    spec = built_children["Deployment"]["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"pool": "gpu"}
    assert spec["tolerations"] == [toleration]
    deployment = built_children["Deployment"]
    # Kueue's integration `deployment` reads the Deployment's label; `pod` reads the pods' label.
    for labeled_object in (deployment, deployment["spec"]["template"]):
        assert labeled_object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"
    assert "kueue" not in json.dumps(build())


def test_an_engine_has_a_shared_memory_volume():
    memory = {"medium": "Memory", "sizeLimit": "8Gi"}
    assert {"name": "shm", "emptyDir": memory} in pod()["volumes"]
    mount = {"name": "shm", "mountPath": "/dev/shm"}
    assert mount in container()["volumeMounts"]


def test_images_are_pulled_with_the_secrets_of_the_release():
    serving_spec = serving()
    source = PodSource(
        MANIFEST.digest, MANIFEST, MANIFEST.engine, serving_spec, serving_spec.weights, "verifier"
    )
    [deployment] = [
        child
        for child in children(source._replace(pull_secrets=("mirror",)), OWNER, 1)
        if child["kind"] == "Deployment"
    ]
    spec = deployment["spec"]["template"]["spec"]
    assert spec["imagePullSecrets"] == [{"name": "mirror"}]
    assert "imagePullSecrets" not in pod()


def test_the_engine_service_is_headless():
    assert build()["Service"]["spec"]["clusterIP"] == "None"


def test_a_node_pool_removed_from_the_spec_is_drift_of_the_deployment():
    """`is_as_built` ignores missing fields, because it accepts other users' additions."""
    default_children, pooled_children = build(), build(nodePool={"selector": {"pool": "gpu"}})
    assert not is_as_built(default_children["Deployment"], pooled_children["Deployment"])
    assert is_as_built(default_children["Service"], pooled_children["Service"])


def test_pods_have_the_service_account_labels_and_annotations_of_the_release():
    extra_labels = {"azure.workload.identity/use": "true", "app.kubernetes.io/name": "somebody"}
    annotations = {"eks.amazonaws.com/skip-containers": "engine"}
    pods = EnginePods(
        service_account="reader",
        labels=extra_labels,
        annotations=annotations,
        priority_class="high",
    )
    template = build(pods=pods)["Deployment"]["spec"]["template"]
    labels = template["metadata"]["labels"]
    assert labels == extra_labels | child_labels(MANIFEST.digest)
    assert template["metadata"]["annotations"] == annotations
    spec = template["spec"]
    assert (spec["serviceAccountName"], spec["priorityClassName"]) == ("reader", "high")
    assert spec["automountServiceAccountToken"] is False
    assert not {"serviceAccountName", "priorityClassName"} & pod().keys()


def test_equal_specs_build_equal_children():
    assert build() == build()


def test_tenants_do_not_change_the_children():
    assert build(tenants=["acme"]) == build()
