"""The words that Kubernetes takes for where something runs: names, labels, amounts, taints."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from agentworld.records.base import Record

_DNS = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"

ObjectName = Annotated[str, StringConstraints(pattern=rf"^{_DNS}$", max_length=253)]
LabelKey = Annotated[str, StringConstraints(pattern=rf"^({_DNS}/)?{_LABEL}$", max_length=317)]
LabelValue = Annotated[str, StringConstraints(pattern=rf"^({_LABEL})?$")]
Image = Annotated[str, StringConstraints(pattern=r"^\S+$")]
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
