"""The fields of KEDA's ScaledObject that a guide writes: for this Python no package has its types.

After `apis/keda/v1alpha1/scaledobject_types.go` of kedacore/keda (commit ca8dd42). A field that is
not here is refused, though KEDA may know it.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Target(_Part):
    api_version: Annotated[str, Field(alias="apiVersion")]
    kind: str
    name: str


class _Trigger(_Part):
    type: str
    metadata: dict[str, str]


class ScaledObjectSpec(_Part):
    """The scaled object, and its triggers."""

    scale_target_ref: Annotated[_Target, Field(alias="scaleTargetRef")]
    min_replica_count: Annotated[int, Field(alias="minReplicaCount")]
    max_replica_count: Annotated[int, Field(alias="maxReplicaCount")]
    cooldown_period: Annotated[int, Field(alias="cooldownPeriod")]
    triggers: list[_Trigger]
