"""Logs of Inspect AI.

A sample is one episode. It has each exchange three times: in its messages, in the inputs of its
models, and in its tool events. The messages are what the agent saw at the end. The tool events are
all calls, including those of sub-agents.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

from pydantic import JsonValue

from agentworld.data.importers.base import Importer, ImportOptions, ImportResult, read_row
from agentworld.data.importers.content import text_of
from agentworld.data.importers.events import Episode, Event
from agentworld.data.importers.inspect_logs import (
    SUFFIX,
    Evaluation,
    Exchanges,
    Sample,
    ToolError,
    ToolEvent,
    samples_of,
)
from agentworld.data.importers.messages import ToolCall, action_of, events_of
from agentworld.data.importers.tools import tools_of
from agentworld.records.trajectory import Span
from agentworld.storage.source import SourceFile

_CUT_HEAD = re.compile(
    r"\s*The output of your call to .+ was too long to be displayed\.\n"
    r"Here is a truncated version:\n<START_TOOL_OUTPUT>\n"
)
_CUT_TAIL = re.compile(r"\n<END_TOOL_OUTPUT>\s*\Z")
_HARNESS_ERRORS = ("approval", "cancelled", "limit", "parsing")
"""Types of errors for calls that did not reach the world."""
_UNMATCHED_EVENT = "tool event that no message repeats"


class InspectOptions(ImportOptions):
    """Which parts of a sample are read."""

    calls: Literal["messages", "events"] = "messages"
    """Where the import reads calls and results: the messages of a sample, or its tool events, which
    have those of sub-agents too.
    """
    start: Literal["nothing", "user"] = "nothing"
    """The start of an episode: nothing, or the first message of the user."""


class Inspect:
    """See `NamedImporter`."""

    options = InspectOptions

    def claims_name(self, file: SourceFile) -> bool:
        """By the suffix of Inspect's logs."""
        return file.suffix == SUFFIX

    def claims(self, value: JsonValue) -> bool:
        """Whether the row has the status of an evaluation."""
        fields = value if isinstance(value, dict) else {}
        evaluation = fields.get("eval")
        return "status" in fields and isinstance(evaluation, dict) and "task" in evaluation

    def read(self, file: SourceFile, options: ImportOptions, domain: str) -> Iterator[ImportResult]:
        """Each sample of a log is a record."""
        settings = InspectOptions.model_validate(options.model_dump())
        for evaluation, row in samples_of(file):
            convert = partial(_episode, evaluation=evaluation, options=settings)
            yield read_row(row, domain, convert)


IMPORTER: Importer = Inspect()


def _episode(value: JsonValue, evaluation: Evaluation, options: InspectOptions) -> Episode:
    sample = Sample.model_validate(value)
    tools, problems = tools_of(sample.tools)
    return Episode(
        source=options.source or evaluation.model or "inspect",
        events=[*problems, *_events(sample, options), *_run_errors(sample)],
        tools=tools,
        task_id=f"{evaluation.task}/{sample.id}",
        licence=options.licence,
    )


def _events(sample: Sample, options: InspectOptions) -> Iterator[Event]:
    exchanges = sample.exchanges
    events = _of_messages(exchanges, options.start)
    if options.calls == "messages":
        yield from events
    else:
        others = (event for event in events if event.role in ("start", "left out"))
        yield from (event for event in others if event.reason != _UNMATCHED_EVENT)
        yield from _of_tool_events(exchanges.events)


def _of_messages(exchanges: Exchanges, start: str) -> Iterator[Event]:
    waiting = defaultdict[str, deque[int]](deque)
    for number, call_event in enumerate(exchanges.events):
        if call_event:
            waiting[call_event.id].append(number)
    messages = {f"messages[{number}]": message for number, message in enumerate(exchanges.messages)}
    for event in events_of(exchanges.messages, start):
        if event.role != "observation":
            yield event
            continue
        same = waiting[event.call]
        tool_event = exchanges.events[same.popleft()] if same else None
        yield _mark_event(event, messages[event.place].error, tool_event)
    for number in sorted(number for numbers in waiting.values() for number in numbers):
        yield Event(f"events[{number}]", "left out", reason=_UNMATCHED_EVENT)


def _of_tool_events(events: Sequence[ToolEvent | None]) -> Iterator[Event]:
    for number, event in enumerate(events):
        if not event:
            continue
        place = f"events[{number}]"
        action = action_of(ToolCall(function=event.function, arguments=event.arguments))
        yield Event(place, "action", action=action, call=event.id, time=event.timestamp)
        if event.pending:
            continue
        text, parts = text_of(_content(event.result), place)
        yield from parts
        yield _mark_event(Event(place, "observation", text, call=event.id), event.error, event)


def _content(result: JsonValue) -> JsonValue:
    """The content of the message that Inspect makes from a tool's result."""
    match result:
        case dict():
            return [result]
        case int() | float():
            return str(result)
    return result


def _mark_event(event: Event, error: ToolError | None, tool_event: ToolEvent | None) -> Event:
    """The observation that the agent got, with Inspect's own text marked as spans."""
    text = error.message if error and error.message else event.text
    head, tail = _CUT_HEAD.match(text), _CUT_TAIL.search(text)
    spans = []
    if error and error.type in _HARNESS_ERRORS and text:
        spans.append(Span(start=0, end=len(text), what="error of the harness"))
    elif head and tail:
        spans.append(Span(start=0, end=head.end(), what="note that it is cut"))
        spans.append(Span(start=tail.start(), end=len(text), what="note that it is cut"))
    return event._replace(
        text=text,
        time=(tool_event and (tool_event.completed or tool_event.timestamp)) or event.time,
        spans=tuple(spans),
        is_cut=bool((head and tail) or (tool_event and tool_event.truncated)),
    )


def _run_errors(sample: Sample) -> Iterator[Event]:
    if sample.error:
        yield Event("error", "left out", reason="error that ended the sample")
    for number, _ in enumerate(sample.error_retries or []):
        yield Event(f"error_retries[{number}]", "left out", reason="attempt that was begun anew")
