"""Chat messages with tool calls, as OpenAI's API has them.

A call is an action, and its result is the observation. The import drops messages of the user, the
system and the agent, because the environment is only what answers the calls.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Literal

from pydantic import BaseModel, JsonValue, ValidationError

from agentworld.data.importers.base import Importer, ImportOptions, ImportResult, read_rows
from agentworld.data.importers.content import text_of
from agentworld.data.importers.events import Episode, Event
from agentworld.data.importers.observations import ObservationOptions, observation_of
from agentworld.data.importers.paths import first_text, text_at, value_at
from agentworld.data.importers.tools import tools_of
from agentworld.domains.base import Action, Call
from agentworld.errors import InputError
from agentworld.storage.source import SourceFile

_LISTS = ("messages", "traj", "trajectory", "conversation", "history")
_TASKS = ("task_id", "instance_id")
_MODELS = ("model", "info.model")
_AS_IT_IS = ObservationOptions()


class MessagesOptions(ObservationOptions):
    """The places of fields in a record, if they are unusual."""

    messages: str = ""
    """Path of the list of messages, such as `state.history`."""
    task: str = ""
    """Path of the task's id; all trials of a task have the same. Default: `task_id`, else
    `instance_id`.
    """
    start: Literal["nothing", "user"] = "nothing"
    """The start of an episode: nothing, or the first message of the user."""


class Function(BaseModel):
    """A called function."""

    name: str
    arguments: JsonValue = None


class ToolCall(BaseModel):
    """A call in the form of OpenAI or Inspect."""

    id: str | None = None
    function: Function | str
    arguments: JsonValue = None
    """The arguments of a call whose function is only a name."""


class Message(BaseModel):
    """One message."""

    role: str
    content: JsonValue = None
    tool_calls: list[ToolCall] | None = None
    function_call: Function | None = None
    tool_call_id: str | None = None
    timestamp: str | float | None = None


class _Record(BaseModel):
    messages: list[Message]


class Messages:
    """See `Importer`."""

    options = MessagesOptions

    def claims(self, value: JsonValue) -> bool:
        """Whether a message calls a tool, and the record does not name another format."""
        if isinstance(value, dict) and "trajectory_format" in value:
            return False
        try:
            messages = _messages(value, "")
        except (ValidationError, InputError):
            return False
        return any(message.tool_calls or message.function_call for message in messages)

    def read(self, file: SourceFile, options: ImportOptions, domain: str) -> Iterator[ImportResult]:
        """A row is a list of messages, or an object that has one."""
        settings = MessagesOptions.model_validate(options.model_dump())
        return read_rows(file, domain, lambda value: _episode(value, settings))


IMPORTER: Importer = Messages()


def _episode(value: JsonValue, options: MessagesOptions) -> Episode:
    messages = _messages(value, options.messages)
    tools, problems = tools_of(value.get("tools") if isinstance(value, dict) else None)
    return Episode(
        source=options.source or first_text(value, _MODELS) or "messages",
        events=[*problems, *events_of(messages, options.start, options)],
        tools=tools,
        task_id=text_at(value, options.task) if options.task else first_text(value, _TASKS),
        licence=options.licence,
    )


def _messages(value: JsonValue, path: str) -> list[Message]:
    fields = value if isinstance(value, dict) else {}
    name = path or next((name for name in _LISTS if isinstance(fields.get(name), list)), "")
    if not name and not isinstance(value, list):
        raise InputError("it has no list of messages; name its path with --set messages=PATH")
    return _Record.model_validate({"messages": value_at(value, name)}).messages


def events_of(
    messages: Sequence[Message], start: str = "nothing", options: ObservationOptions = _AS_IT_IS
) -> Iterator[Event]:
    """The events of messages in order; `start` is the option of that name."""
    is_start = start == "user"
    for number, message in enumerate(messages):
        place = f"messages[{number}]"
        text, parts = text_of(message.content, place)
        yield from parts
        time = "" if message.timestamp is None else str(message.timestamp)
        if message.role in ("tool", "function"):
            yield _observation(Event(place, "observation", text, time=time), message, options)
        elif message.role == "assistant":
            if text.strip():
                yield Event(place, "left out", text, reason="what the agent wrote beside its calls")
            yield from _actions(message, place, time)
        elif message.role == "user" and is_start:
            is_start = False
            yield Event(place, "start", text)
        else:
            yield Event(place, "left out", text, reason=f"message of the {message.role}")


def _observation(event: Event, message: Message, options: ObservationOptions) -> Event:
    text, spans, is_cut = observation_of(event.text, options)
    call = message.tool_call_id or ""
    return event._replace(text=text, call=call, spans=spans, is_cut=is_cut)


def _actions(message: Message, place: str, time: str) -> Iterator[Event]:
    calls = message.tool_calls or []
    if message.function_call:
        calls = [*calls, ToolCall(function=message.function_call)]
    for number, call in enumerate(calls):
        action = action_of(call)
        location = f"{place}.tool_calls[{number}]"
        yield Event(location, "action", action=action, call=call.id or "", time=time)


def action_of(call: ToolCall) -> Action:
    """The action of a call; arguments that are not an object stay as the agent wrote them."""
    function = call.function
    if isinstance(function, str):
        function = Function(name=function, arguments=call.arguments)
    arguments = function.arguments
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments or "{}")
    if arguments is None or isinstance(arguments, dict):
        return Action("", (Call(function.name, arguments or {}),))
    return Action(json.dumps({"name": function.name, "arguments": arguments}, ensure_ascii=False))
