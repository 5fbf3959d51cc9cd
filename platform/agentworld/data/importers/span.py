"""A span in the forms of OpenTelemetry's exporters, its Python SDK, any-agent and MLflow."""

import re
from datetime import UTC, datetime
from typing import Annotated, NamedTuple

from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    Field,
    JsonValue,
    StrictInt,
    StrictStr,
)

from agentworld.data.importers.otlp import attributes_of

_SECOND = 10**9


def _nanoseconds(value: object) -> object:
    if isinstance(value, str):
        return int(value) if value.isdecimal() else _of_iso(value)
    return value


def _of_iso(text: str) -> int:
    """Nanoseconds since the epoch; a `datetime` has only microseconds."""
    try:
        moment = datetime.fromisoformat(text)
        whole = moment.replace(microsecond=0, tzinfo=moment.tzinfo or UTC)
        seconds = int(whole.timestamp())
    except (ValueError, OverflowError):
        raise ValueError(
            "it is neither nanoseconds nor a time of ISO 8601; write it as one of them"
        ) from None
    fraction = re.search(r"[.,](\d+)", text)
    return seconds * _SECOND + int((fraction[1] if fraction else "0").ljust(9, "0")[:9])


Id = StrictInt | StrictStr
"""A number of any size, hexadecimal digits, or base64; compared in its written form."""
Nanoseconds = Annotated[StrictInt, BeforeValidator(_nanoseconds)]


class TraceId(BaseModel):
    """The trace id of a span, which may have no other valid field."""

    trace_id: Id | None = Field(
        None, validation_alias=AliasChoices(AliasPath("context", "trace_id"), "trace_id", "traceId")
    )


class Span(TraceId):
    """One span."""

    span_id: Id | None = Field(
        None, validation_alias=AliasChoices(AliasPath("context", "span_id"), "span_id", "spanId")
    )
    parent_id: Id | None = Field(
        None,
        validation_alias=AliasChoices(
            AliasPath("parent", "span_id"), "parent_id", "parent_span_id", "parentSpanId"
        ),
    )
    name: str = ""
    start: Nanoseconds = Field(
        validation_alias=AliasChoices("start_time_unix_nano", "startTimeUnixNano", "start_time")
    )
    end: Nanoseconds | None = Field(
        None, validation_alias=AliasChoices("end_time_unix_nano", "endTimeUnixNano", "end_time")
    )
    attributes: Annotated[dict[str, JsonValue], BeforeValidator(attributes_of)] = {}


class PlacedSpan(NamedTuple):
    """A span and its place in a record."""

    place: str
    """Its place in the record, such as `spans[3]`."""
    span: Span
