"""Where the steps run on one cluster: one YAML file for all pipelines.

What Kubernetes would refuse is refused here, as far as it can be known before anything runs.
"""

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from agentworld.recipes.load import load_yaml
from agentworld.records.base import Label, Record
from agentworld.steps import STEPS

SHARED_MEMORY = "/dev/shm"

_WEEK_SECONDS = 7 * 24 * 3600

_DNS = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"

ObjectName = Annotated[str, StringConstraints(pattern=rf"^{_DNS}$", max_length=253)]
LabelKey = Annotated[str, StringConstraints(pattern=rf"^({_DNS}/)?{_LABEL}$", max_length=317)]
LabelValue = Annotated[str, StringConstraints(pattern=rf"^({_LABEL})?$")]
Resource = Annotated[str, StringConstraints(pattern=rf"^{_DNS}/{_LABEL}$", max_length=317)]
MountPath = Annotated[str, StringConstraints(pattern=r"^(/[A-Za-z0-9_.-]+)+$")]
SecretKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]+$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Text = Annotated[str, Field(coerce_numbers_to_str=True, pattern=r"^[^\x00]*$")]
Cpu = Annotated[
    str,
    Field(
        coerce_numbers_to_str=True,
        pattern=r"^([1-9][0-9]{0,5}(m|\.[0-9]{1,3})?|0\.[0-9]{0,2}[1-9])$",
    ),
]
"""Cores, as `2`, `0.5` or `500m`."""
Bytes = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,5}[MGT]i?$")]
"""As `512Mi` or `64Gi`."""


def _known(step: str) -> str:
    if step not in STEPS:
        raise ValueError(f"there is no such step; steps are {', '.join(STEPS)}")
    return step


class Toleration(Record):
    """Lets a step run on nodes with a taint."""

    key: LabelKey | None = None
    """Null tolerates every taint."""
    operator: Literal["Exists", "Equal"] = "Equal"
    value: LabelValue = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Null tolerates every effect."""
    toleration_seconds: int | None = Field(None, ge=0)
    """How long a pod stays that is to go; null for ever."""

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        if self.operator == "Exists" and self.value:
            raise ValueError("a taint that exists has any value; leave the value out")
        if self.operator == "Equal" and self.key is None:
            raise ValueError("without a key every taint is meant; write `operator: Exists`")
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise ValueError("nodes send pods away by `effect: NoExecute` alone; write that")
        return self


class Accelerator(Record):
    """Devices of one kind."""

    type: Resource
    """The resource's name, as `nvidia.com/gpu`."""
    count: int = Field(1, gt=0)


class Resources(Record):
    """Cores and memory."""

    cpu: Cpu | None = None
    memory: Bytes | None = None


class Retries(Record):
    """What follows when a step's pod fails or is taken away; the next one resumes."""

    times: int = Field(gt=0)
    wait_seconds: int = Field(60, ge=0)
    """Before the first retry."""
    factor: float = Field(2.0, ge=1)
    """Each wait is so many times the last one."""
    most_seconds: int = Field(_WEEK_SECONDS, gt=0)
    """From the first attempt's start on; what then still runs is ended. Kubeflow's own hour would
    leave a long training without any retry."""


class Place(Record):
    """Where a step runs, and with what."""

    node_selector: dict[LabelKey, LabelValue] = {}
    """Labels that a node has."""
    tolerations: tuple[Toleration, ...] = ()
    accelerator: Accelerator | None = None
    requests: Resources = Resources()
    limits: Resources = Resources()
    shared_memory: Bytes | None = None
    """The size of /dev/shm, which counts as memory; null leaves what the node gives: 64 MB."""
    volumes: dict[ObjectName, MountPath] = {}
    """Existing claims, and where they are mounted."""
    secrets: dict[ObjectName, dict[SecretKey, Variable]] = {}
    """Existing Secrets: the variable that each of their keys becomes."""
    environment: dict[Variable, Text] = {}
    queue: Label | None = None
    """A LocalQueue of Kueue, which admits the step's pod."""
    priority_class: Label | None = None
    """A WorkloadPriorityClass of Kueue."""
    image_pull_secrets: tuple[ObjectName, ...] = ()
    retries: Retries | None = None

    def over(self, default: "Place") -> "Place":
        """What is said here, and the default's in every other field."""
        return default.model_copy(
            update={name: getattr(self, name) for name in self.model_fields_set}
        )

    @property
    def given_twice(self) -> list[str]:
        """Mounts and variables of which a pod can have only one."""
        mounts = [*self.volumes.values(), *([SHARED_MEMORY] if self.shared_memory else [])]
        secret = [variable for keys in self.secrets.values() for variable in keys.values()]
        counted = Counter([*mounts, *self.environment, *secret])
        return [name for name, times in counted.items() if times > 1]


class Placement(Record):
    """A cluster's image, and a place for each step.

    A step's own fields replace the default's, field by field and each as a whole: its
    `node_selector` is all that a node must have, and `accelerator: null` takes the devices away.
    """

    image: Annotated[str, StringConstraints(pattern=r"^\S+$")] | None = None
    """Of this project, as the cluster pulls it."""
    default: Place = Place()
    steps: dict[Annotated[str, AfterValidator(_known)], Place] = {}

    @model_validator(mode="after")
    def _can_be_kept(self) -> Self:
        for name, place in {"default": self.default, **self.steps}.items():
            if twice := place.over(self.default).given_twice:
                raise ValueError(f"{name} gives {twice[0]} twice; leave one")
        return self

    def queued(self, queue: str) -> "Placement":
        """The same with this queue for all steps that name none of their own."""
        return self.model_copy(update={"default": Place(queue=queue).over(self.default)})

    def of(self, step: str) -> Place:
        """Where this step runs."""
        return self.steps.get(step, Place()).over(self.default)


def load_placement(path: Path) -> Placement:
    """Reads a placement; raises InputError naming the file, the key and the value."""
    return load_yaml(Placement, path, "placement")
