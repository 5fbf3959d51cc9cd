"""The common parts of all resources: their JSON form, and conditions."""

from typing import Annotated, Literal, NamedTuple

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel


class Part(BaseModel):
    """A part of a resource: frozen; camelCase in JSON, snake_case in Python."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        serialize_by_alias=True,
    )


ShortText = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
LongText = Annotated[str, StringConstraints(max_length=32_768)]
Url = Annotated[str, StringConstraints(min_length=1, max_length=2048)]
Timestamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time in UTC, as `2026-11-26T01:30:00Z`. The API server checks it on writing."""


class Check(NamedTuple):
    """A CEL rule that the API server checks, and the message if it does not hold."""

    rule: str
    message: str


def with_checks(*checks: Check) -> ConfigDict:
    """The config of a part with these checks."""
    rules: list[JsonValue] = [check._asdict() for check in checks]
    return ConfigDict(json_schema_extra={"x-kubernetes-validations": rules})


ConditionStatus = Literal["True", "False", "Unknown"]


_LABEL = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_DNS = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


# with the limits of `Condition` in pkg/apis/meta/v1/types.go of kubernetes/apimachinery
class Condition(Part):
    """A condition that is true, false or unknown: a `metav1.Condition`."""

    type: Annotated[str, StringConstraints(max_length=316, pattern=f"^({_DNS}/)?({_LABEL})$")]
    status: ConditionStatus
    reason: Annotated[
        str,
        StringConstraints(
            min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
        ),
    ]
    """One word in CamelCase, for programs."""
    message: LongText
    """A message for people: the state and what to do about it. It may be empty."""
    observed_generation: int = Field(ge=0)
    """The generation of the spec that this condition describes."""
    last_transition_time: Timestamp
    """When the status changed last."""


Conditions = Annotated[
    tuple[Condition, ...],
    Field(
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        }
    ),
]
"""At most one of each type."""
