"""The compiled pipelines, and a placement that sets every field."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import yaml

from agentworld_pipelines.compile import compile_pipeline
from agentworld_pipelines.components import IMAGE
from agentworld_pipelines.placement import Place, Placement, load_placement
from agentworld_pipelines.retries import RETRIES, Retries

Tree = dict[str, Any]

ROOT = Path(__file__).parents[2]
PLACEMENT = load_placement(ROOT / "tests/data/pipelines/placement.yaml")


class Compiled(NamedTuple):
    """A pipeline, and its Kubernetes settings."""

    spec: Tree
    platform: Tree

    @property
    def tasks(self) -> dict[str, Tree]:
        """Every task by its name, under any condition."""
        inner = (value.get("dag", {"tasks": {}}) for value in self.spec["components"].values())
        dags = [self.spec["root"]["dag"], *inner]
        return {_step(name): task for dag in dags for name, task in dag["tasks"].items()}

    @property
    def containers(self) -> dict[str, Tree]:
        """The container of each step."""
        executors = self.spec["deploymentSpec"]["executors"]
        containers = {
            name.removeprefix("exec-"): executor["container"]
            for name, executor in executors.items()
        }
        return {_step(name): executor for name, executor in containers.items()}

    def pod(self, step: str) -> Tree:
        """The settings of a step that only Kubernetes receives."""
        executors = self.platform.get("deploymentSpec", {}).get("executors", {})
        return dict(executors.get(f"exec-{step.replace('_', '-')}", {}))

    def place(self, step: str) -> Place:
        """The placement of the step's own pod in the compiled pipeline."""
        container, pod = self.containers[step], self.pod(step)
        config = {
            "image": None if container["image"] == IMAGE else container["image"],
            "node_selector": pod.get("nodeSelector", {}).get("labels", {}),
            "tolerations": [_toleration(item) for item in pod.get("tolerations", [])],
            **_given(container.get("resources", {})),
            **_empty(pod.get("emptyDirMounts", [])),
            "volumes": {item["constant"]: item["mountPath"] for item in pod.get("pvcMount", [])},
            "secrets": {item["secretName"]: _keys(item) for item in pod.get("secretAsEnv", [])},
            "environment": {
                item["name"]: item.get("value", "")
                for item in container.get("env", [])
                if item["name"] != RETRIES
            },
            **_labelled(pod.get("podMetadata", {"labels": {}})["labels"]),
            "image_pull_secrets": [item["secretName"] for item in pod.get("imagePullSecret", [])],
            "retries": _retries(self.tasks[step].get("retryPolicy")),
        }
        return Place.model_validate(config)

    def own_retries(self, step: str) -> Retries | None:
        """The retries of the step's own process."""
        variables = {
            item["name"]: item.get("value") for item in self.containers[step].get("env", [])
        }
        return Retries.model_validate_json(variables[RETRIES]) if RETRIES in variables else None

    def taken_along(self, step: str) -> Place | None:
        """The placement of the pods that run the step on its behalf."""
        parameters = self.tasks[step]["inputs"]["parameters"]
        place_text = parameters.get("place") if step != "deploy" else None
        return place_text and Place.model_validate_json(place_text["runtimeValue"]["constant"])


def _step(name: str) -> str:
    """Kubeflow's names have dashes."""
    return name.replace("-", "_")


def _toleration(toleration: Tree) -> Tree:
    seconds = {"tolerationSeconds": "toleration_seconds"}
    return {seconds.get(name, name): value for name, value in toleration.items()}


def _given(resources: Tree) -> Tree:
    devices = resources.get("accelerator")
    return {
        "requests": {
            "cpu": resources.get("resourceCpuRequest"),
            "memory": resources.get("resourceMemoryRequest"),
        },
        "limits": {
            "cpu": resources.get("resourceCpuLimit"),
            "memory": resources.get("resourceMemoryLimit"),
        },
        "accelerator": devices
        and {"type": devices["resourceType"], "count": devices["resourceCount"]},
    }


def _empty(mounts: list[Tree]) -> dict[str, str]:
    """The sizes of volumes that are empty when a pod begins."""
    names = {("Memory", "/dev/shm"): "shared_memory", (None, "/tmp/agentworld"): "scratch"}
    return {names[mount.get("medium"), mount["mountPath"]]: mount["sizeLimit"] for mount in mounts}


def _keys(secret: Tree) -> dict[str, str]:
    return {item["secretKey"]: item["envVar"] for item in secret.get("keyToEnv", [])}


def _labelled(labels: Tree) -> Tree:
    fields = {
        "kueue.x-k8s.io/queue-name": "queue",
        "kueue.x-k8s.io/priority-class": "priority_class",
    }
    queued = {fields[key]: value for key, value in labels.items() if key in fields}
    return {**queued, "labels": {key: labels[key] for key in labels if key not in fields}}


def _retries(policy: Tree | None) -> Tree | None:
    return policy and {
        "times": policy["maxRetryCount"],
        "wait_seconds": policy["backoffDuration"].removesuffix("s"),
        "factor": policy["backoffFactor"],
        "most_seconds": policy["backoffMaxDuration"].removesuffix("s"),
    }


def compiled(
    name: str,
    placement: Placement | None = None,
    image: str | None = None,
    stages: Sequence[str] = (),
) -> Compiled:
    """A pipeline's parsed file; it is compiled once and shared: do not change it."""
    key = name, placement and placement.model_dump_json(), image, *stages
    if key not in _COMPILED:
        _COMPILED[key] = _compile(name, placement, image, stages)
    return _COMPILED[key]


def _compile(
    name: str, placement: Placement | None, image: str | None, stages: Sequence[str]
) -> Compiled:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pipeline.yaml"
        compile_pipeline(path, name, placement, image, stages)
        spec, *platforms = yaml.load_all(path.read_text(encoding="utf-8"), _LOADER)
    platform = platforms[0]["platforms"]["kubernetes"] if platforms else {}
    return Compiled(spec, platform)


_COMPILED: dict[tuple[str | None, ...], Compiled] = {}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
