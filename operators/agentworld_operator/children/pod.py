"""An engine's pod: verified weights, mounted read-only, and vLLM.

The container meets the restricted Pod Security Standard: no root, no privileges, a read-only root
file system, no token of the cluster.
"""

from typing import Any, NamedTuple

from agentworld.cluster.names import ENGINE_PORT, engine_labels, engine_name
from agentworld.cluster.pod_security import CONTAINER_SECURITY, pod_security
from agentworld.cluster.records.base import Part
from agentworld.cluster.records.serving import NodePool, Resources, Serving, Weights
from agentworld.records.base import Digest
from agentworld.records.simulator import EnginePin, SimulatorManifest
from agentworld_operator.policy.engine import VERIFIER

Manifest = dict[str, Any]

_PINNED, _VERIFIED, _WEIGHTS = "/pinned", "/verified", "/weights"
_WEIGHTS_LIMIT = "200Gi"
_PROBE_SECONDS = 5

# The engine's model name is what the verifier computed: an engine over other weights refuses
# requests for the pinned digest.
_SCRIPT = f'exec "$@" $(cat {_VERIFIED}/arguments)'
_COMMAND = ("python3", "-m", "vllm.entrypoints.openai.api_server", "--enable-prompt-tokens-details")
_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HOME": "/tmp",
}

# It reads several files at once. An init container needs no resources beyond the engine's own.
_VERIFIER_RESOURCES = {
    "requests": {"cpu": "200m", "memory": "256Mi"},
    "limits": {"cpu": "2", "memory": "1Gi"},
}


class EnginePods(Part):
    """Settings of all engines' pods, which the chart's administrator sets: an engine's cloud
    identity cannot be chosen by a Simulator.
    """

    service_account: str = ""
    """The service account; empty uses the namespace's default.

    A pod has no rights in the cluster.
    """
    labels: dict[str, str] = {}
    """In addition to the operator's labels, which take precedence."""
    annotations: dict[str, str] = {}
    priority_class: str = ""


class PodSource(NamedTuple):
    """One of our simulators, and the parts of its pods."""

    digest: Digest
    manifest: SimulatorManifest
    engine: EnginePin
    serving: Serving
    weights: Weights
    verifier_image: str
    """The image of the init container that checks the weights."""
    pull_secrets: tuple[str, ...] = ()
    """Names of Secrets for pulling both images."""
    pods: EnginePods = EnginePods()


def pod_template(source: PodSource, labels: dict[str, str]) -> Manifest:
    """The template of every replica, with these labels."""
    metadata: Manifest = {"labels": source.pods.labels | labels}
    if source.pods.annotations:
        metadata["annotations"] = source.pods.annotations
    return {"metadata": metadata, "spec": _pod_spec(source)}


def _pod_spec(source: PodSource) -> Manifest:
    pool, labels = source.serving.node_pool, engine_labels(source.digest)
    secrets, pods = source.pull_secrets, source.pods
    return {
        "automountServiceAccountToken": False,
        # Otherwise Services of the namespace set variables like VLLM_..., which vLLM reads.
        "enableServiceLinks": False,
        "securityContext": pod_security(),
        "initContainers": [_verifier(source)],
        "containers": [_engine(source)],
        "volumes": _volumes(source),
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels},
            }
        ],
        **_placement(pool),
        **({"imagePullSecrets": [{"name": secret} for secret in secrets]} if secrets else {}),
        **({"serviceAccountName": pods.service_account} if pods.service_account else {}),
        **({"priorityClassName": pods.priority_class} if pods.priority_class else {}),
    }


def _verifier(source: PodSource) -> Manifest:
    """Succeeds only if every file is the pinned one; then writes the engine's arguments."""
    environment = {
        "AGENTWORLD_MANIFEST": f"{_PINNED}/manifest.json",
        "AGENTWORLD_MODEL_FOLDER": _folder(source),
        "AGENTWORLD_ENGINE_ARGUMENTS": f"{_VERIFIED}/arguments",
    }
    if source.weights.url:
        environment["AGENTWORLD_WEIGHTS_URL"] = source.weights.url
        environment["AGENTWORLD_WEIGHTS_SHARED"] = str(source.weights.cache is not None).lower()
    mounts = [_mount("pinned"), _mount("verified", writable=True), _mount("tmp", writable=True)]
    secret = source.weights.secret
    return {
        "name": VERIFIER,
        "image": source.verifier_image,
        "command": ["python3", "-m", "agentworld.pinning.verifier"],
        "env": _variables(environment),
        **({"envFrom": [{"secretRef": {"name": secret}}]} if secret else {}),
        "resources": _VERIFIER_RESOURCES,
        "volumeMounts": [*mounts, _mount("weights", writable=source.weights.url is not None)],
        # Its last output becomes the Simulator's condition.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": _security_context(),
    }


def _engine(source: PodSource) -> Manifest:
    serving, engine = source.serving, source.engine
    listening = ["--host", "0.0.0.0", "--port", str(ENGINE_PORT)]
    command = [*_COMMAND, "--model", _folder(source), *listening, *engine.arguments]
    health = {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": _PROBE_SECONDS}
    tries = -(-serving.startup_seconds // _PROBE_SECONDS)
    writable_mounts = [_mount(name, writable=True) for name in ("tmp", "shm")]
    return {
        "name": "engine",
        "image": f"{serving.image}@{engine.image}",
        "command": ["/bin/sh", "-c", _SCRIPT, "engine"],
        "args": command,
        "env": _variables(_ENVIRONMENT | engine.environment),
        "ports": [{"name": "http", "containerPort": ENGINE_PORT, "protocol": "TCP"}],
        "resources": _amounts(serving.resources),
        "volumeMounts": [_mount("weights"), _mount("verified"), *writable_mounts],
        "startupProbe": health | {"failureThreshold": tries},
        "readinessProbe": health | {"timeoutSeconds": 3, "failureThreshold": 2},
        "livenessProbe": health | {"timeoutSeconds": 10, "failureThreshold": 12},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": _security_context(),
    }


def _amounts(resources: Resources) -> Manifest:
    """As strings, because an API server may reject numbers in an apply."""
    return {
        kind: {name: str(amount) for name, amount in amounts.items()}
        for kind, amounts in resources.model_dump().items()
    }


def _volumes(source: PodSource) -> list[Manifest]:
    serving = source.serving
    shared_memory = {"medium": "Memory", "sizeLimit": str(serving.shared_memory)}
    return [
        {"name": "pinned", "configMap": {"name": engine_name(source.digest)}},
        {"name": "verified", "emptyDir": {"sizeLimit": "1Mi"}},
        {"name": "weights", **_weights_volume(source.weights)},
        {"name": "tmp", "emptyDir": {"sizeLimit": str(serving.scratch)}},
        # The engine's processes communicate through it, even on one device; a container has only 64
        # MiB by default.
        {"name": "shm", "emptyDir": shared_memory},
    ]


def _weights_volume(weights: Weights) -> Manifest:
    if weights.claim:
        return {"persistentVolumeClaim": {"claimName": weights.claim, "readOnly": True}}
    if weights.image:
        return {"image": {"reference": weights.image, "pullPolicy": "IfNotPresent"}}
    if weights.cache:
        return {"persistentVolumeClaim": {"claimName": weights.cache}}
    return {"emptyDir": {"sizeLimit": str(weights.size_limit or _WEIGHTS_LIMIT)}}


def _placement(pool: NodePool) -> Manifest:
    tolerations = [toleration.model_dump(exclude_none=True) for toleration in pool.tolerations]
    placed: Manifest = {"nodeSelector": dict(pool.selector)} if pool.selector else {}
    return placed | ({"tolerations": tolerations} if tolerations else {})


def _folder(source: PodSource) -> str:
    """The model's folder in both containers; a cache has a folder for each model."""
    weights, artifact = source.weights, source.manifest.artifact
    if weights.cache and artifact:
        return f"{_WEIGHTS}/{artifact.removeprefix('sha256:')}"
    return f"{_WEIGHTS}/{weights.path.strip('/')}".rstrip("/")


def _mount(name: str, *, writable: bool = False) -> Manifest:
    path = "/dev/shm" if name == "shm" else f"/{name}"
    return {"name": name, "mountPath": path} | ({} if writable else {"readOnly": True})


def _variables(environment: dict[str, str]) -> list[Manifest]:
    return [{"name": name, "value": value} for name, value in environment.items()]


def _security_context() -> Manifest:
    return {**CONTAINER_SECURITY, "readOnlyRootFilesystem": True}
