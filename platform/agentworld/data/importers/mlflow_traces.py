"""Traces of MLflow, one for each row, from an experiment (`mlflow:NAME?filter=...`) or a file.

A file has traces in the form that `Trace.to_json` of MLflow's client writes.
"""

from collections.abc import Iterator
from functools import partial

from pydantic import BaseModel, Field, JsonValue, ValidationError

from agentworld.data.importers.base import Importer, ImportOptions, ImportResult, convert_record
from agentworld.data.importers.events import Episode
from agentworld.data.importers.rows import rows_of
from agentworld.data.importers.span import PlacedSpan, Span
from agentworld.data.importers.trace import SpanOptions, episode_of
from agentworld.errors import InputError
from agentworld.storage.source import SourceFile

_FORM = "mlflow"
_IN_PROGRESS = "IN_PROGRESS"


class _Info(BaseModel):
    trace_id: str
    state: str = ""
    tags: dict[str, JsonValue] = {}
    trace_metadata: dict[str, JsonValue] = {}


class _Data(BaseModel):
    spans: list[Span] = Field(min_length=1)


class _Trace(BaseModel):
    info: _Info
    data: _Data


class _TraceOfAnySpans(BaseModel):
    info: _Info
    data: dict[str, JsonValue] | None


class MlflowTraces:
    """See `Importer`."""

    options = SpanOptions

    def claims(self, value: JsonValue) -> bool:
        """Whether the row has the info and data of a trace."""
        try:
            _TraceOfAnySpans.model_validate(value)
        except ValidationError:
            return False
        return True

    def read(self, file: SourceFile, options: ImportOptions, domain: str) -> Iterator[ImportResult]:
        """A row is a trace."""
        settings = SpanOptions.model_validate(options.model_dump())
        for row in rows_of(file):
            if row.problem:
                yield ImportResult(row.place, problem=row.problem)
            else:
                place = _place_of(row.place, row.value)
                yield convert_record(place, partial(_episode, row.value, settings), domain)


IMPORTER: Importer = MlflowTraces()


def _place_of(place: str, value: JsonValue) -> str:
    match value:
        case {"info": {"trace_id": str(name)}}:
            return f"trace {name}"
    return place


def _episode(value: JsonValue, options: SpanOptions) -> Episode:
    if isinstance(value, dict) and "data" in value and value["data"] is None:
        raise InputError("data: MLflow cannot read the trace's spans")
    trace = _Trace.model_validate(value)
    if trace.info.state == _IN_PROGRESS:
        raise InputError("info.state: the trace is in progress; import it when it has ended")
    spans = [
        PlacedSpan(f"data.spans[{number}]", span) for number, span in enumerate(trace.data.spans)
    ]
    return episode_of(spans, options, _FORM, trace.info.tags | trace.info.trace_metadata)
