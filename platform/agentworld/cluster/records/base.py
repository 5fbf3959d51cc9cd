"""What all resources share: their form in JSON, and conditions."""

from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints
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


class Check(NamedTuple):
    """What the API server checks, as a rule in CEL, and what it says where that does not hold."""

    rule: str
    message: str


def with_checks(*checks: Check) -> ConfigDict:
    """The config of a part that the API server checks so."""
    rules: list[JsonValue] = [check._asdict() for check in checks]
    return ConfigDict(json_schema_extra={"x-kubernetes-validations": rules})


ConditionStatus = Literal["True", "False", "Unknown"]


class Condition(Part):
    """One thing that is so, is not, or is not known."""

    type: str
    status: ConditionStatus
    reason: str
    """One word in CamelCase, for programs."""
    message: str = ""
    """For people: what is so and what to do about it."""
    observed_generation: int
    """Of the spec that this was said of."""
    last_transition_time: str
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
