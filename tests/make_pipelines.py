"""The pipelines as they compile: bare, and placed on a cluster by a file that says everything.

`python -m make_pipelines` writes anew what they compile to, for the tests to compare.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import yaml

from agentworld_pipelines.compile import PIPELINES, compile_pipeline
from agentworld_pipelines.components import IMAGE
from agentworld_pipelines.placement import Place, Placement, load_placement

Tree = dict[str, Any]

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests/data/pipelines"
PLACEMENT = load_placement(GOLDEN / "placement.yaml")
PLACEMENTS = {"bare": None, "placed": PLACEMENT}
GOLDENS = [(name, how) for name in PIPELINES for how in PLACEMENTS]


class Compiled(NamedTuple):
    """A pipeline, and what it says to Kubernetes."""

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
        """Each step's."""
        executors = self.spec["deploymentSpec"]["executors"]
        named = {name.removeprefix("exec-"): each["container"] for name, each in executors.items()}
        return {_step(name): each for name, each in named.items()}

    def pod(self, step: str) -> Tree:
        """What only Kubernetes is told of a step."""
        executors = self.platform.get("deploymentSpec", {}).get("executors", {})
        return dict(executors.get(f"exec-{step.replace('_', '-')}", {}))

    def place(self, step: str) -> Place:
        """Where the step's own pod runs, as the compiled pipeline has it."""
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
                each["name"]: each.get("value", "") for each in container.get("env", [])
            },
            **_queued(pod.get("podMetadata", {"labels": {}})["labels"]),
            "image_pull_secrets": [each["secretName"] for each in pod.get("imagePullSecret", [])],
            "retries": _retries(self.tasks[step].get("retryPolicy")),
        }
        return Place.model_validate(told)

    def taken_along(self, step: str) -> Place | None:
        """The place of the pods that do the step for its own."""
        parameters = self.tasks[step]["inputs"]["parameters"]
        told = parameters.get("nodes") or parameters.get("place")
        return told and Place.model_validate_json(told["runtimeValue"]["constant"])


def _step(name: str) -> str:
    """Kubeflow has dashes in its names."""
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


def _queued(labels: Tree) -> Tree:
    return {
        "queue": labels.get("kueue.x-k8s.io/queue-name"),
        "priority_class": labels.get("kueue.x-k8s.io/priority-class"),
    }


def _retries(policy: Tree | None) -> Tree | None:
    return policy and {
        "times": policy["maxRetryCount"],
        "wait_seconds": policy["backoffDuration"].removesuffix("s"),
        "factor": policy["backoffFactor"],
        "most_seconds": policy["backoffMaxDuration"].removesuffix("s"),
    }


def text(name: str, placement: Placement | None = None, image: str | None = None) -> str:
    """A pipeline's file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made/pipeline.yaml"
        compile_pipeline(path, name, placement, image)
        return path.read_text(encoding="utf-8")


def compiled(name: str, placement: Placement | None = None, image: str | None = None) -> Compiled:
    """A pipeline's file, read."""
    spec, *platforms = yaml.load_all(text(name, placement, image), _LOADER)
    platform = platforms[0]["platforms"]["kubernetes"] if platforms else {}
    return Compiled(spec, platform)


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def main() -> int:
    """Writes each of them."""
    for name, how in GOLDENS:
        (GOLDEN / f"{name}.{how}.yaml").write_text(text(name, PLACEMENTS[how]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
