"""Builders of Kubernetes objects: our resources, and the state of an engine."""

import json
from typing import Any

from agentworld.cluster.api_resources import type_fields
from agentworld.cluster.names import child_labels
from agentworld.cluster.records.serving import Serving
from agentworld.records.simulator import EnginePin, SimulatorManifest
from agentworld_operator.policy.engine import VERIFIER
from make import records

NOW = "2026-01-01T00:00:00Z"
IMAGE = "registry.example/vllm"
PLACED = {"image": IMAGE, "weights": {"claim": "weights", "path": "world"}}

Object = dict[str, Any]


def pinned_manifest(seed: str = "one", **fields: object) -> SimulatorManifest:
    """The manifest of a simulator that vLLM serves from an image."""
    engine = EnginePin(
        kind="vllm",
        version="vllm 0.32.0",
        image=records.digest("image"),
        arguments=("--dtype", "float32", "--max-model-len", "1024"),
    )
    domains = records.pinned_domains(system_prompt=f"A world, {seed}.")
    return records.manifest(**{"engine": engine, "domains": domains, **fields})


def simulator(name: str = "one", seed: str | None = None, **serving: object) -> Object:
    """A Simulator as a user writes it."""
    manifest = json.loads(pinned_manifest(seed or name).canonical)
    return {
        **type_fields("Simulator"),
        "metadata": {"name": name},
        "spec": {"identity": {"manifest": manifest}, "serving": PLACED | serving},
    }


def alias(simulator: str = "one", name: str = "stable", **spec: object) -> Object:
    """A SimulatorAlias that points at this simulator."""
    return {
        **type_fields("SimulatorAlias"),
        "metadata": {"name": name},
        "spec": {"simulator": simulator, **spec},
    }


def schedule(name: str = "nightly", **spec: object) -> Object:
    """A PipelineSchedule that runs every night."""
    defaults = {"pipeline": "world_model", "recipe": "demo", "store": "/store", "cron": "0 3 * * *"}
    return {**type_fields("TrainingSchedule"), "metadata": {"name": name}, "spec": defaults | spec}


def there(resource: Object, version: int = 1, **fields: object) -> Object:
    """An object as an API server returns it."""
    metadata = resource["metadata"] | {
        "namespace": "n",
        "uid": f"uid-{resource['metadata']['name']}",
        "resourceVersion": str(version),
        "generation": 1,
        "creationTimestamp": NOW,
    }
    return resource | {"metadata": metadata} | fields


def serving(**fields: object) -> Serving:
    return Serving.model_validate(PLACED | fields)


def deployment(*, replicas: int = 1, ready: int = 0, **status: object) -> Object:
    status_fields = {"replicas": replicas, "readyReplicas": ready, **status}
    return {"metadata": {}, "status": status_fields}


def pod(
    *,
    verifier: Object | None = None,
    engine: Object | None = None,
    ready: bool = False,
    last: Object | None = None,
    **status: object,
) -> Object:
    """A pod with the states of its two containers."""
    inits = [{"name": VERIFIER, "state": verifier or {}, "lastState": {}}]
    container = {"name": "engine", "state": engine or {}, "lastState": last or {}, "ready": ready}
    status_fields = {"initContainerStatuses": inits, "containerStatuses": [container], **status}
    labels = child_labels(records.digest("simulator"))
    return {"metadata": {"name": "pod", "labels": labels}, "status": status_fields}


def ended(code: int, message: str = "") -> Object:
    return {"terminated": {"exitCode": code, "message": message}}


def waiting(reason: str, message: str = "") -> Object:
    return {"waiting": {"reason": reason, "message": message}}
