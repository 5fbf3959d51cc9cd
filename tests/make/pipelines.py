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
        """Every task by its name, whichever condition it is under."""
        inner = (each.get("dag", {"tasks": {}}) for each in self.spec["components"].values())
        dags = [self.spec["root"]["dag"], *inner]
        return {_step(name): task for dag in dags for name, task in dag["tasks"].items()}

    @property
    def containers(self) -> dict[str, Tree]:
        """The container of each step."""
        executors = self.spec["deploymentSpec"]["executors"]
        named = {name.removeprefix("exec-"): each["container"] for name, each in executors.items()}
        return {_step(name): each for name, each in named.items()}

    def pod(self, step: str) -> Tree:
        """The settings of a step that only Kubernetes receives."""
        executors = self.platform.get("deploymentSpec", {}).get("executors", {})
        return dict(executors.get(f"exec-{step.replace('_', '-')}", {}))

    def place(self, step: str) -> Place:
        """The placement of the step's own pod in the compiled pipeline."""
        container, pod = self.containers[step], self.pod(step)
        told = {
            "image": None if container["image"] == IMAGE else container["image"],
            "node_selector": pod.get("nodeSelector", {}).get("labels", {}),
            "tolerations": [_toleration(each) for each in pod.get("tolerations", [])],
            **_given(container.get("resources", {})),
            **_empty(pod.get("emptyDirMounts", [])),
            "volumes": {each["constant"]: each["mountPath"] for each in pod.get("pvcMount", [])},
            "secrets": {each["secretName"]: _keys(each) for each in pod.get("secretAsEnv", [])},
            "environment": {
                each["name"]: each.get("value", "")
                for each in container.get("env", [])
                if each["name"] != RETRIES
            },
            **_labelled(pod.get("podMetadata", {"labels": {}})["labels"]),
            "image_pull_secrets": [each["secretName"] for each in pod.get("imagePullSecret", [])],
            "retries": _retries(self.tasks[step].get("retryPolicy")),
        }
        return Place.model_validate(told)

    def own_retries(self, step: str) -> Retries | None:
        """What the step's own process is told."""
        told = {each["name"]: each.get("value") for each in self.containers[step].get("env", [])}
        return Retries.model_validate_json(told[RETRIES]) if RETRIES in told else None

    def taken_along(self, step: str) -> Place | None:
        """The placement of the pods that run the step on its behalf."""
        parameters = self.tasks[step]["inputs"]["parameters"]
        told = parameters.get("place") if step != "deploy" else None
        return told and Place.model_validate_json(told["runtimeValue"]["constant"])


def _step(name: str) -> str:
    """Kubeflow's names have dashes."""
    return name.replace("-", "_")


def _toleration(told: Tree) -> Tree:
    seconds = {"tolerationSeconds": "toleration_seconds"}
    return {seconds.get(name, name): value for name, value in told.items()}


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
    """The sizes of what is empty when a pod begins."""
    known = {("Memory", "/dev/shm"): "shared_memory", (None, "/tmp/agentworld"): "scratch"}
    return {known[mount.get("medium"), mount["mountPath"]]: mount["sizeLimit"] for mount in mounts}


def _keys(secret: Tree) -> dict[str, str]:
    return {each["secretKey"]: each["envVar"] for each in secret.get("keyToEnv", [])}


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
