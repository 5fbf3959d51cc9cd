"""Makes an episode from a trace: a span that calls a tool is an action and its observation.

All sources pass traces as `PlacedSpan`s in any order, and the spans are sorted by their start.
Other spans are not part of the environment that answers the calls, and are left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import Field, JsonValue

from agentworld.data.importers.base import ImportOptions
from agentworld.data.importers.events import Episode, Event
from agentworld.data.importers.messages import Function, action_of
from agentworld.data.importers.messages import ToolCall as MessageCall
from agentworld.data.importers.span import PlacedSpan, Span
from agentworld.data.importers.span_attributes import (
    MODELS,
    SESSIONS,
    ToolCall,
    first_word,
    kind_of,
    tool_call_of,
    tool_definitions,
)
from agentworld.data.importers.tool_values import unquote
from agentworld.data.importers.tools import tools_of
from agentworld.records.tool import Tools

_OF_MLFLOW = "mlflow."


class SpanOptions(ImportOptions):
    """The options of traces from every source."""

    harness_tools: tuple[str, ...] = ()
    """Tools of the harness, such as `final_answer`. The import drops their calls."""
    task: str = ""
    """Attribute with the task's id; all traces of a task have the same. Default: the session, as
    `gen_ai.conversation.id`, `session.id` or `mlflow.trace.session`."""
    cut_at: int = Field(0, ge=0)
    """The most characters of a result that the tracer keeps. Results of exactly this many count as
    truncated. 0 turns this off."""


def episode_of(
    spans: Iterable[PlacedSpan],
    options: SpanOptions,
    default_source: str,
    labels: Mapping[str, JsonValue] | None = None,
) -> Episode:
    """The episode of a trace; `labels` are attributes of the trace itself."""
    trace = _Trace(spans, options)
    tools, problems = trace.tools()
    return Episode(
        source=options.source or trace.word(MODELS) or default_source,
        events=[*problems, *trace.events()],
        tools=tools,
        task_id=trace.word([options.task] if options.task else SESSIONS, labels or {}),
        licence=options.licence,
    )


class _Trace:
    """The spans of a trace in the order of their start, and their tool calls."""

    def __init__(self, spans: Iterable[PlacedSpan], options: SpanOptions) -> None:
        self._options = options
        self._spans = sorted(
            map(_unquote_span, spans), key=lambda placed_span: placed_span.span.start
        )
        self._calls = [tool_call_of(span.name, span.attributes) for _, span in self._spans]
        self._by_id = {
            span.span_id: (span, call)
            for (_, span), call in zip(self._spans, self._calls, strict=True)
            if span.span_id is not None
        }

    def word(self, keys: Sequence[str], labels: Mapping[str, JsonValue] | None = None) -> str:
        """The first of these attributes that the trace or one of its spans has."""
        attributes = [labels or {}, *(span.attributes for _, span in self._spans)]
        return next((word for part in attributes if (word := first_word(part, keys))), "")

    def tools(self) -> tuple[Tools, Sequence[Event]]:
        """The tools by their definitions; a tool without a definition by its calls."""
        definitions = [
            tool for _, span in self._spans for tool in tool_definitions(span.attributes)
        ]
        names: list[JsonValue] = [
            {"name": call.name, "description": call.description} for call in self._calls if call
        ]
        distinct = {str(tool): tool for tool in (*definitions, *names)}
        tools, problems = tools_of(list(distinct.values()))
        return tuple(t for t in tools if t.name not in self._options.harness_tools), problems

    def events(self) -> Iterator[Event]:
        """An action and an observation for a span that calls a tool; any other is left out."""
        originals: dict[str | int, Span] = {}
        for (place, span), call in zip(self._spans, self._calls, strict=True):
            first = span if span.span_id is None else originals.setdefault(span.span_id, span)
            if first is not span and first == span:
                yield Event(place, "left out", reason="copy of a span")
            elif call:
                yield from self._exchange(place, span, call)
            else:
                yield Event(place, "left out", reason=f"span: {kind_of(span.attributes)}")

    def _exchange(self, place: str, span: Span, call: ToolCall) -> Iterator[Event]:
        if reason := self._why_left_out(span, call):
            yield Event(place, "left out", reason=reason)
            return
        function = MessageCall(function=Function(name=call.name, arguments=call.arguments))
        yield Event(place, "action", action=action_of(function), call=place, time=str(span.start))
        if call.result is not None:
            yield Event(
                place,
                "observation",
                call.result,
                call=place,
                time=str(span.end or span.start),
                is_cut=0 < self._options.cut_at == len(call.result),
            )

    def _why_left_out(self, span: Span, call: ToolCall) -> str:
        if call.name in self._options.harness_tools:
            return "call of a tool of the harness"
        if call.arguments is None:
            return "tool span without arguments"
        return "inner span of the same call" if self._is_inner(span, call) else ""

    def _is_inner(self, span: Span, call: ToolCall) -> bool:
        """Whether an outer span is the same call, recorded by another tracer."""
        ids = {span.span_id}
        while span.parent_id in self._by_id and span.parent_id not in ids:
            span, outer = self._by_id[span.parent_id]
            ids.add(span.span_id)
            if outer and outer.result is not None and outer[:2] == call[:2]:
                return True
        return False


def _unquote_span(placed: PlacedSpan) -> PlacedSpan:
    """Decodes texts that MLflow wrote as JSON, with quotation marks."""
    attributes = placed.span.attributes
    if not any(name.startswith(_OF_MLFLOW) for name in attributes):
        return placed
    update = {"attributes": {name: unquote(value) for name, value in attributes.items()}}
    return placed._replace(span=placed.span.model_copy(update=update))
