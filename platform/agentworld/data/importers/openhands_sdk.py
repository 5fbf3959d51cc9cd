"""Events of OpenHands' SDK (V1): each names its kind, and an action has the call of a tool.

An observation has the id of its call. If the user or the scaffold answered in place of the tool,
that is not an observation, and the call has no result.
"""

import re
from collections.abc import Iterator, Mapping

from pydantic import BaseModel, JsonValue

from agentworld.data.importers.content import spans_of, text_of
from agentworld.data.importers.events import Event
from agentworld.data.importers.messages import Function, ToolCall, action_of

_ACTION, _OBSERVATION, _SYSTEM = "ActionEvent", "ObservationEvent", "SystemPromptEvent"
_KIND = re.compile(r"[A-Z]\w*(Event|Observation|Condensation|CondensationRequest)|Condensation\w*")
_TOOLS_OF_HARNESS = frozenset("finish think task_tracker delegate".split())
_MARKS = {
    "cut": re.compile(r"<response clipped>[^\n]*|\[\.\.\. Observation truncated[^\]\n]{0,99}\]"),
    "harness": re.compile(r"\A\[Tool '[^'\n]{1,128}' executed\.\]"),
}


class _Call(BaseModel):
    name: str
    arguments: JsonValue = None


class SdkEvent(BaseModel):
    """One event; fields of other kinds are ignored."""

    kind: str
    id: str | None = None
    timestamp: str | float | None = None
    thought: JsonValue = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    tool_call: _Call | None = None
    action: dict[str, JsonValue] | None = None
    observation: dict[str, JsonValue] | None = None
    tools: list[dict[str, JsonValue]] | None = None

    @property
    def time(self) -> str:
        """The time in the log's form."""
        return "" if self.timestamp is None else str(self.timestamp)


def is_of_sdk(value: JsonValue) -> bool:
    """Whether the value is an event of the SDK."""
    fields = value if isinstance(value, dict) else {}
    kind = fields.get("kind")
    return isinstance(kind, str) and "role" not in fields and bool(_KIND.fullmatch(kind))


def tools_of_system(events: Mapping[str, SdkEvent]) -> JsonValue:
    """The tools of the first system prompt, under the names that the agent uses."""
    system = next((event for event in events.values() if event.kind == _SYSTEM), None)
    tools = system.tools if system and system.tools else []
    return [{**tool, "name": tool.get("name") or tool.get("title")} for tool in tools]


def sdk_events_of(events: Mapping[str, SdkEvent]) -> Iterator[Event]:
    """The events of an episode, from its records with their places."""
    for place, event in events.items():
        if event.kind == _ACTION:
            yield from _action(event, place)
        elif event.kind == _OBSERVATION and event.tool_name not in _TOOLS_OF_HARNESS:
            yield from _observation(event, place)
        else:
            label = f"{event.kind} of {event.tool_name}" if event.tool_name else event.kind
            yield Event(place, "left out", reason=f"event: {label}")


def _action(event: SdkEvent, place: str) -> Iterator[Event]:
    thought, _ = text_of(event.thought, place)
    if thought.strip():
        reason = "what the agent wrote beside its calls"
        yield Event(f"{place}.thought", "left out", thought, reason=reason)
    name = event.tool_name or (event.tool_call.name if event.tool_call else "")
    if not name or name in _TOOLS_OF_HARNESS:
        yield Event(place, "left out", reason=f"event: {_ACTION} of {name or 'no tool'}")
        return
    arguments: JsonValue = {
        key: value
        for key, value in (event.action or {}).items()
        if key != "kind" and value is not None
    }
    if event.tool_call:  # as the agent wrote it, without the harness's defaults
        arguments = event.tool_call.arguments
    call = ToolCall(function=Function(name=name, arguments=arguments))
    identity = event.tool_call_id or event.id or ""
    yield Event(place, "action", action=action_of(call), call=identity, time=event.time)


def _observation(event: SdkEvent, place: str) -> Iterator[Event]:
    result = event.observation or {}
    content = result.get("content")
    if content is None:
        content = result.get("output")
    text, parts = text_of(content, place)
    yield from parts
    spans = spans_of(text, _MARKS)
    is_cut = any(span.what == "cut" for span in spans)
    call = event.tool_call_id or ""
    yield Event(place, "observation", text, None, call, event.time, spans, is_cut)
