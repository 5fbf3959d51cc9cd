"""What all resources share: their form in JSON, and conditions."""

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
    """A part of a resource: frozen, in the API's own spelling outside and in ours here."""

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
"""A moment in UTC, as `2026-11-26T01:30:00Z`. The API server checks it, where it is written."""


class Check(NamedTuple):
    """What the API server checks, as a rule in CEL, and what it says where that does not hold."""

    rule: str
    message: str


def with_checks(*checks: Check) -> ConfigDict:
    """The config of a part that the API server checks so."""
    rules: list[JsonValue] = [check._asdict() for check in checks]
    return ConfigDict(json_schema_extra={"x-kubernetes-validations": rules})


ConditionStatus = Literal["True", "False", "Unknown"]


_LABEL = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_DNS = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


# With the limits of `Condition` in pkg/apis/meta/v1/types.go of kubernetes/apimachinery.
class Condition(Part):
    """One thing that is so, is not, or is not known: a `metav1.Condition`."""

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
    """For people: what is so and what to do about it. It may be empty."""
    observed_generation: int = Field(ge=0)
    """Of the spec that this was said of."""
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
"""One of each type."""
