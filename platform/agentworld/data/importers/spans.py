"""Traces of agents as OpenTelemetry's spans, in files.

A row is a document of spans, a single span, or an export of OTLP. The spans of a trace may be in
many rows, between those of other traces. A trace is complete at the last row with one of its spans;
a first pass over the file finds that row.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from pydantic import JsonValue, ValidationError

from agentworld.data.importers.base import Importer, ImportOptions, ImportResult, convert_record
from agentworld.data.importers.events import Episode
from agentworld.data.importers.otlp import Export
from agentworld.data.importers.rows import Row, rows_of
from agentworld.data.importers.span import PlacedSpan, Span, TraceId
from agentworld.data.importers.trace import SpanOptions, episode_of
from agentworld.data.secret_search import redacted_problem
from agentworld.errors import InputError
from agentworld.storage.source import SourceFile

_FORM = "spans"


class _RawSpan(NamedTuple):
    trace: str
    """The name of its trace in an import."""
    place: str
    value: JsonValue


class Spans:
    """See `Importer`."""

    options = SpanOptions

    def claims(self, value: JsonValue) -> bool:
        """Whether the row's first span is valid and belongs to a trace."""
        try:
            first = Span.model_validate(_raw_spans(Row("", value))[0].value)
        except (ValidationError, InputError, RecursionError):
            return False
        return first.trace_id is not None and first.span_id is not None

    def read(self, file: SourceFile, options: ImportOptions, domain: str) -> Iterator[ImportResult]:
        """An episode for each trace; an invalid span is a problem of its whole trace."""
        settings = SpanOptions.model_validate(options.model_dump())
        last_rows = _last_rows(file)
        traces: dict[str, list[_RawSpan]] = {}
        for number, row in enumerate(rows_of(file)):
            spans = _spans_or_problem(row)
            if isinstance(spans, str):
                yield ImportResult(row.place, problem=spans)
                continue
            for span in spans:
                traces.setdefault(span.trace, []).append(span)
            for name in dict.fromkeys(span.trace for span in spans):
                if last_rows.get(name) == number:
                    yield convert_record(
                        name, partial(_episode, traces.pop(name), settings), domain
                    )


IMPORTER: Importer = Spans()


def _last_rows(file: SourceFile) -> dict[str, int]:
    """For each trace, the number of the last row with one of its spans."""
    last_rows: dict[str, int] = {}
    for number, row in enumerate(rows_of(file)):
        spans = _spans_or_problem(row)
        if not isinstance(spans, str):
            last_rows |= dict.fromkeys((span.trace for span in spans), number)
    return last_rows


def _spans_or_problem(row: Row) -> list[_RawSpan] | str:
    if row.problem:
        return row.problem
    try:
        return _raw_spans(row)
    except ValidationError as error:
        return redacted_problem(error)
    except InputError as error:
        return str(error)


def _raw_spans(row: Row) -> list[_RawSpan]:
    """The spans of a row; raises ValidationError or InputError if it has none."""
    match row.value:
        case {"resourceSpans": _} | {"resource_spans": _}:
            spans = list(Export.model_validate(row.value).spans())
        case {"spans": list(values)}:
            spans = [(f"spans[{number}]", value) for number, value in enumerate(values)]
        case dict(value) if _trace_of(value):
            spans = [("", row.value)]
        case _:
            spans = []
    if not spans:
        raise InputError("it has no spans; name another --format")
    return [
        _RawSpan(_trace_of(value) or row.place, ", ".join(filter(None, (row.place, place))), value)
        for place, value in spans
    ]


def _trace_of(value: JsonValue) -> str:
    try:
        trace_id = TraceId.model_validate(value).trace_id
    except ValidationError:
        return ""
    return "" if trace_id is None else f"trace {trace_id}"


def _episode(spans: list[_RawSpan], options: SpanOptions) -> Episode:
    return episode_of([_place_span(span) for span in spans], options, _FORM)


def _place_span(raw: _RawSpan) -> PlacedSpan:
    try:
        return PlacedSpan(raw.place, Span.model_validate(raw.value))
    except ValidationError as error:
        raise InputError(f"{raw.place}: {redacted_problem(error)}") from error
