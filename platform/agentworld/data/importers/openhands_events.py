"""Converts the events of OpenHands.

In the layout of 2024 an action's arguments are beside its name, and there are no ids.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from agentworld.data.importers.content import spans_of, text_of
from agentworld.data.importers.events import Event
from agentworld.data.importers.messages import ToolCall, action_of
from agentworld.domains.base import Action, Call

HARNESS = frozenset(
    "agent_state_changed change_agent_state condensation condensation_request condense delegate"
    " finish loop_detection loop_recovery message null pause recall reject resume start stop system"
    " task_tracking think user_rejected".split()
)
"""Kinds of events between the agent, its user and the harness, without the environment."""
WORLD = frozenset(
    "browse browse_interactive call_tool_mcp edit error mcp read run run_ipython success"
    " write".split()
)
_NO_ARGUMENTS = frozenset(
    "action_risk blocking confirmation_state cwd hidden impl_source is_confirmed is_static"
    " keep_prompt kernel_init_code llm_metrics message security_risk thought timeout"
    " translated_ipython_code".split()
)
"""Fields that the harness adds to the arguments of an action."""
_MARKS = {
    "cut": re.compile(r"\[\.\.\. Observation truncated[^\]\n]{0,99}\]|<response clipped>[^\n]*"),
    "harness": re.compile(
        r"\[Jupyter (?:current working directory|Python interpreter): [^\]\n]{0,512}\]"
    ),
}


class _Metadata(BaseModel):
    tool_call_id: str | None = None
    model_response: JsonValue = None


class OpenHandsEvent(BaseModel):
    """One event, in either layout."""

    model_config = ConfigDict(extra="allow")

    id: int | str | None = None
    cause: int | str | None = None
    action: str | None = None
    observation: str | None = None
    source: str | None = None
    timestamp: str | float | None = None
    content: JsonValue = None
    args: dict[str, JsonValue] | None = None
    tool_call_metadata: _Metadata | None = None

    @property
    def time(self) -> str:
        """The time in the log's form."""
        return "" if self.timestamp is None else str(self.timestamp)

    @property
    def arguments(self) -> dict[str, JsonValue]:
        """The arguments of an action, in the harness's form."""
        if self.args is not None:
            return self.args
        content = {"content": self.content} if "content" in self.model_fields_set else {}
        return {**content, **(self.model_extra or {})}


def events_of(events: Mapping[str, OpenHandsEvent]) -> Iterator[Event]:
    """The events of an episode, from its records with their places."""
    actions = {
        event.id for event in events.values() if event.action and event.action not in HARNESS
    }
    for place, event in events.items():
        kind = event.action or event.observation
        if not kind or kind in HARNESS:
            yield Event(place, "left out", reason=f"event: {kind or 'without a kind'}")
        elif event.action:
            yield from _action(event, place)
        elif event.id is not None and event.cause not in actions:
            text, reason = text_of(event.content, place)[0], "observation whose cause is no action"
            yield Event(place, "left out", text, reason=reason)
        else:
            yield from _observation(event, place)


def _action(event: OpenHandsEvent, place: str) -> Iterator[Event]:
    thought = event.arguments.get("thought")
    if isinstance(thought, str) and thought.strip():
        reason = "what the agent wrote beside its calls"
        yield Event(f"{place}.thought", "left out", thought, reason=reason)
    call = "" if event.id is None else str(event.id)
    yield Event(place, "action", action=_call(event), call=call, time=event.time)


def _call(event: OpenHandsEvent) -> Action:
    """The agent's call if the log has it; otherwise the harness's event as a call."""
    metadata = event.tool_call_metadata
    match metadata and metadata.model_response:
        case {"choices": [{"message": {"tool_calls": list(calls)}}, *_]}:
            for value in calls:
                with suppress(ValidationError):
                    call = ToolCall.model_validate(value)
                    if metadata and call.id and call.id == metadata.tool_call_id:
                        return action_of(call)
    arguments = {
        name: value
        for name, value in event.arguments.items()
        if value is not None and name not in _NO_ARGUMENTS
    }
    return Action("", (Call(event.action or "", arguments),))


def _observation(event: OpenHandsEvent, place: str) -> Iterator[Event]:
    text, parts = text_of(event.content, place)
    yield from parts
    call = "" if event.cause is None else str(event.cause)
    spans = spans_of(text, _MARKS)
    is_cut = any(span.what == "cut" for span in spans)
    yield Event(place, "observation", text, None, call, event.time, spans, is_cut)
