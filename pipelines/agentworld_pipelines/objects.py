"""A pipeline's part of the cluster's objects: what it wants of them, and what they say. Pure.

The operator owns their form (`agentworld_operator.resources`), and comes above this package.
"""

import json
from pathlib import Path
from typing import NamedTuple

from agentworld.errors import InputError, PipelineError
from agentworld.records.base import Digest
from agentworld.records.simulator import EnginePin, SimulatorManifest
from agentworld.steps.deploy import Naming
from agentworld.storage.address import redact
from agentworld.storage.working_copy import is_bucket, there
from agentworld_pipelines.api_server import Object
from agentworld_pipelines.deployment import Deployment, Target
from agentworld_pipelines.terms import Resources

GROUP = "agentworld.dev"
_API_VERSION = f"{GROUP}/v1alpha1"
MOVED_BY = f"{GROUP}/moved-by"
"""The annotation of an alias that names the step that moved it last."""
_DIGITS = 12
_HOPELESS = ("InvalidImageName", "ErrImageNeverPull")
"""What no waiting mends; a registry that is gone, or a pool that is full, may be back."""


def path(namespace: str, plural: str, name: str = "") -> str:
    """Where the API server has one of our objects, or all of a kind."""
    return f"/apis/{_API_VERSION}/namespaces/{namespace}/{plural}/{name}".rstrip("/")


def simulator_name(naming: Naming) -> str:
    """Of the object that is made for it."""
    return f"{naming.alias}-{naming.simulator.digest.removeprefix('sha256:')[:_DIGITS]}"


def check_servable(manifest: SimulatorManifest) -> None:
    """Raises InputError for what an operator would refuse, before anything is written."""
    engine = manifest.engine
    if not isinstance(engine, EnginePin) or engine.kind != "vllm":
        raise InputError(
            f"the simulator pins {engine.kind}, which cannot tell what it serves; set engine.kind"
            " in the recipe to vllm"
        )
    if engine.image is None:
        raise InputError(
            "the simulator pins an environment and no container image; set AGENTWORLD_ENGINE_IMAGE"
            " where the step simulate runs"
        )


def simulator(naming: Naming, target: Target, name: str) -> Object:
    """As `resources.simulator` of the operator has it."""
    labels = {
        "app.kubernetes.io/name": "agentworld-simulator",
        "app.kubernetes.io/instance": naming.alias,
        "app.kubernetes.io/part-of": "agentworld",
        "app.kubernetes.io/managed-by": "agentworld-pipelines",
    }
    return {
        "apiVersion": _API_VERSION,
        "kind": "Simulator",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "identity": {"manifest": json.loads(naming.simulator.manifest.canonical)},
            "serving": _serving(target.deployment) | {"weights": _weights(target, naming)},
        },
    }


def alias(naming: Naming, name: str) -> Object:
    """What an alias is changed to; an override that let it move before lets it move no more."""
    evidence = naming.conditions
    return {
        "apiVersion": _API_VERSION,
        "kind": "SimulatorAlias",
        "metadata": {"name": naming.alias, "annotations": {MOVED_BY: naming.key}},
        "spec": {
            "simulator": name,
            "gate": [each.model_dump() for each in evidence.gate],
            "report": evidence.report,
            "override": None,
        },
    }


def moved_by(resource: Object | None) -> str | None:
    """The step that moved an alias last."""
    key: str | None = ((resource or {}).get("metadata", {}).get("annotations") or {}).get(MOVED_BY)
    return key


class Condition(NamedTuple):
    """A condition."""

    status: str
    reason: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}" if self.message else self.reason


def conditions(resource: Object) -> dict[str, Condition]:
    """What is said of an object as it is wanted now; nothing while nobody has looked."""
    status = resource.get("status") or {}
    if status.get("observedGeneration") != resource["metadata"]["generation"]:
        return {}
    return {
        each["type"]: Condition(each["status"], each["reason"], each.get("message", ""))
        for each in status.get("conditions", ())
    }


def is_ready(resource: Object, digest: Digest) -> bool:
    """Whether runs can be opened with a Simulator; raises PipelineError where none ever will be."""
    conditions_by_type, name = conditions(resource), resource["metadata"]["name"]
    if not conditions_by_type:
        return False
    verified, degraded = conditions_by_type.get("Verified"), conditions_by_type.get("Degraded")
    if verified and verified.status == "False":
        raise PipelineError(
            f"Simulator {name} is not served: {verified.reason}: {verified.message}"
        )
    if degraded and degraded.status == "True" and degraded.reason in _HOPELESS:
        raise PipelineError(f"Simulator {name} never starts: {degraded}")
    if (cluster_digest := resource["status"].get("digest")) != digest:
        raise PipelineError(
            f"Simulator {name} is {cluster_digest} in the cluster and {digest} here; install the"
            " operator of this release"
        )
    ready = conditions_by_type.get("Ready")
    return ready is not None and ready.status == "True"


def _serving(deployment: Deployment) -> Object:
    bounds = deployment.bounds
    size: Object = {"replicas": deployment.replicas}
    if bounds:
        size = {
            "bounds": {
                "min": bounds.min,
                "max": bounds.max,
                "episodesPerReplica": bounds.episodes_per_replica,
                "idleSeconds": bounds.idle_seconds,
            }
        }
    return {
        **size,
        "image": deployment.image,
        "nodePool": {
            "selector": deployment.node_selector,
            "tolerations": [_toleration(each.model_dump()) for each in deployment.tolerations],
        },
        "resources": _resources(deployment),
        "tenants": list(deployment.tenants),
        "startupSeconds": deployment.startup_seconds,
        **({"queue": deployment.queue} if deployment.queue else {}),
    }


def _toleration(toleration: Object) -> Object:
    spelled = {"toleration_seconds": "tolerationSeconds"}
    fields = {name: value for name, value in toleration.items() if value not in (None, "")}
    return {spelled.get(name, name): value for name, value in fields.items()}


def _resources(deployment: Deployment) -> Object:
    devices = deployment.accelerator
    limits = _amounts(deployment.limits)
    if devices:
        limits[devices.type] = devices.count
    return {"requests": _amounts(deployment.requests), "limits": limits}


def _amounts(resources: Resources) -> Object:
    return resources.model_dump(exclude_none=True)


def _weights(target: Target, naming: Naming) -> Object:
    """Where the operator finds the model's files; raises InputError where it would not."""
    claim, secret = target.deployment.claim, target.deployment.secret
    model = naming.simulator.model.resolve()
    if is_bucket(address := there(str(model))):
        if claim:
            raise InputError(
                f"{redact(address)} is in a bucket, and deploy.claim of the placement is {claim};"
                " take the claim out, or name a store on it"
            )
        return {"url": address, **({"secret": secret} if secret else {})}
    if not claim:
        raise InputError(
            f"{model} is in no bucket; name its claim as deploy.claim of the placement"
        )
    assert target.mounted  # it is, where a claim is named
    mounted = Path(target.mounted).resolve()
    if not model.is_relative_to(mounted):
        raise InputError(
            f"{model} is not on the claim {claim}, which is mounted at {mounted}; name a store"
            " there"
        )
    return {"claim": claim, "path": model.relative_to(mounted).as_posix()}
