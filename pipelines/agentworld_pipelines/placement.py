"""Where the steps run on one cluster: one YAML file for all pipelines.

Errors that Kubernetes would report at run time are reported here, if they can be detected.
"""

from collections import Counter
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from agentworld.cluster.names import GROUP, QUEUE_LABEL
from agentworld.cluster.records.serving import Tolerations
from agentworld.cluster.terms import (
    Bytes,
    Image,
    LabelKey,
    LabelValue,
    MountPath,
    ObjectName,
    SecretKey,
    Text,
    Variable,
)
from agentworld.recipes.load import load_yaml
from agentworld.records.base import Label, Record
from agentworld.steps.table import CONCLUDE, STEPS, names_of
from agentworld_pipelines.compute import Accelerator, CpuMemory
from agentworld_pipelines.deployment import Deployment
from agentworld_pipelines.retries import RETRIES, Retries

SHARED_MEMORY = "/dev/shm"
SCRATCH = "/tmp/agentworld"
"""The folder of a step's working copy of a store in a bucket, unless AGENTWORLD_SCRATCH is set."""
QUEUE = QUEUE_LABEL
PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
"""The labels by which Kueue finds a pod or a job."""

_RESERVED = (
    "PET_NNODES",
    "PET_NPROC_PER_NODE",
    "PET_NODE_RANK",
    "PET_MASTER_ADDR",
    "PET_MASTER_PORT",
)
"""Variables that Kubeflow's Trainer sets itself; it refuses a TrainJob with them."""
_RESERVED_DOMAINS = (
    "kubernetes.io",
    "k8s.io",
    "x-k8s.io",
    "kubeflow.org",
    "pipeline",
    "argoproj.io",
    GROUP,
)
"""Labels of these domains and subdomains belong to Kubernetes, Kueue, Kubeflow, Argo or us."""
_RESERVED_LABELS = ("job-name", "controller-uid")
"""Kubernetes finds the pods of a Job by these labels."""


def _check_step(step: str) -> str:
    names = (*STEPS, CONCLUDE)
    if step not in names:
        raise ValueError(f"there is no such step; steps are {', '.join(names)}")
    return step


def _check_label(key: str) -> str:
    prefix, slash, _ = key.rpartition("/")
    domains = [domain for domain in _RESERVED_DOMAINS if f".{prefix}".endswith(f".{domain}")]
    if key in _RESERVED_LABELS or (slash and domains):
        raise ValueError(
            f"{key} is set by others; take another label, or for Kueue queue and priority_class"
        )
    return key


def _check_has_job(name: str) -> None:
    """The default applies to all steps, including those without a Job."""
    live = names_of("live")
    if name not in ("default", *live):
        raise ValueError(
            f"{name} has a service_account, which only {', '.join(live)} and a stage with nodes"
            " can have; remove it"
        )


_FOLLOWS = CpuMemory(cpu="100m", memory="512Mi")
"""The resources of a pod that only follows others."""
_FOLLOWS_AT_MOST = CpuMemory(cpu="1", memory="1Gi")
"""A namespace with a quota refuses pods without limits."""


class Nodes(Record):
    """Nodes that train one stage together, each with the resources of its place."""

    count: int = Field(gt=0)
    """The number of nodes: one is a Job, several are a TrainJob of Kubeflow's Trainer."""
    processes_per_node: int | None = Field(None, gt=0)
    """Processes of each node; null is one for each device, or one without devices."""
    runtime: ObjectName = "torch-distributed"
    """A ClusterTrainingRuntime of Kubeflow's Trainer; torchrun starts the processes."""

    @model_validator(mode="after")
    def _has_a_runtime_if_several(self) -> Self:
        if self.count == 1 and "runtime" in self.model_fields_set:
            raise ValueError(
                f"one node has no runtime, and this one gives {self.runtime}; leave it out, or give"
                " more nodes"
            )
        return self


class Place(Record):
    """Where a step runs, and with what."""

    image: Image | None = None
    """The image; null uses the placement's."""
    nodes: Nodes | None = None
    """Null runs the step in its own pod; only cpt, sft and rl can have their own nodes."""
    node_selector: dict[LabelKey, LabelValue] = {}
    """Labels that a node must have."""
    tolerations: Tolerations = ()
    accelerator: Accelerator | None = None
    requests: CpuMemory = CpuMemory()
    limits: CpuMemory = CpuMemory()
    shared_memory: Bytes | None = None
    """The size of /dev/shm, which counts as memory; null uses the node's default, 64 MB."""
    scratch: Bytes | None = None
    """The size of an empty folder for the working copy of a store in a bucket; null uses the node's
    disk, in a Job at most 200Gi.
    """
    volumes: dict[ObjectName, MountPath] = {}
    """Existing claims, and where they are mounted."""
    secrets: dict[ObjectName, dict[SecretKey, Variable]] = {}
    """Existing Secrets: for each of their keys, the variable with its value."""
    environment: dict[Variable, Text] = {}
    queue: Label | None = None
    """A LocalQueue of Kueue for the step's pod."""
    priority_class: Label | None = None
    """A WorkloadPriorityClass of Kueue."""
    labels: dict[Annotated[LabelKey, AfterValidator(_check_label)], LabelValue] = {}
    """Further labels of all pods of the step, such as one that selects a cloud identity."""
    image_pull_secrets: tuple[ObjectName, ...] = ()
    service_account: ObjectName | None = None
    """An existing account of the step's Job or TrainJob; null uses the namespace's `default`.

    Kubeflow's own pods have the run's account.
    """
    retries: Retries | None = None

    def with_defaults(self, default: "Place") -> "Place":
        """This place, with the default's values of unset fields."""
        return default.model_copy(
            update={name: getattr(self, name) for name in self.model_fields_set}
        )

    @property
    def processes_per_node(self) -> int:
        """The number of processes on each node."""
        count = self.nodes.processes_per_node if self.nodes else None
        return count or (self.accelerator.count if self.accelerator else 1)

    @property
    def own_pod(self) -> "Place":
        """The place of the step's own pod, which only follows if other pods train.

        It has the run's account, because Kubeflow has none for a step.
        """
        if self.nodes is None:
            return self.model_copy(update={"service_account": None})
        field_names = (
            "image",
            "volumes",
            "secrets",
            "environment",
            "labels",
            "image_pull_secrets",
            "retries",
        )
        amounts = {"requests": _FOLLOWS, "limits": _FOLLOWS_AT_MOST}
        return Place(**amounts, **{name: getattr(self, name) for name in field_names})

    @property
    def duplicates(self) -> list[str]:
        """Mounts and variables that occur twice."""
        mounts = [*self.volumes.values(), *([SHARED_MEMORY] if self.shared_memory else [])]
        mounts += [SCRATCH] if self.scratch else []
        own = [RETRIES] if self.retries else []
        path_counts = Counter([*mounts, *self.variables, *own])
        return [name for name, times in path_counts.items() if times > 1]

    @property
    def variables(self) -> list[str]:
        """The names of all environment variables of the place."""
        secret = [variable for keys in self.secrets.values() for variable in keys.values()]
        return [*self.environment, *secret]


class Placement(Record):
    """A cluster's image, and a place for each step.

    A step's own fields replace the default's, each field as a whole: its `node_selector` is
    complete, and `accelerator: null` removes the devices.
    """

    image: Image | None = None
    """The image of this project in the cluster's registry."""
    default: Place = Place()
    steps: dict[Annotated[str, AfterValidator(_check_step)], Place] = {}
    deploy: Deployment | None = None
    """How accepted simulators are served; null only moves an alias in the store."""

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        for name, own_place in {"default": self.default, **self.steps}.items():
            place = own_place.with_defaults(self.default)
            if duplicates := place.duplicates:
                raise ValueError(f"{name} gives {duplicates[0]} twice; leave one")
            if place.nodes and name not in names_of("training"):
                steps = ", ".join(names_of("training"))
                raise ValueError(
                    f"{name} has its own nodes, which only {steps} can have; remove them"
                )
            if own_place.service_account and not place.nodes:
                _check_has_job(name)
            if place.nodes and (reserved := set(_RESERVED).intersection(place.variables)):
                raise ValueError(f"{name} gives {min(reserved)}, which Trainer sets; remove it")
        if self.deploy:
            self.deploy.check_mounted(self.of("deploy").volumes)
        return self

    def with_queue(self, queue: str) -> "Placement":
        """The same with this queue for all steps without their own."""
        return self.model_copy(update={"default": Place(queue=queue).with_defaults(self.default)})

    @property
    def target(self) -> str:
        """The target for the step `deploy`; empty without a cluster to serve in."""
        return self.deploy.to_target_json(self.of("deploy").volumes) if self.deploy else ""

    def of(self, step: str) -> Place:
        """The place and the image of this step."""
        place = self.steps.get(step, Place()).with_defaults(self.default)
        return place.model_copy(update={"image": place.image or self.image})


def load_placement(path: Path) -> Placement:
    """Reads a placement; raises InputError naming the file, the key and the value."""
    return load_yaml(Placement, path, "placement")
