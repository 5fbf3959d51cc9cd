"""Messages of Anthropic's API, whose content is a text or a list of blocks.

A block `tool_use` is an action. A block `tool_result`, in a message of the user, is its
observation. The import drops tools that the API itself runs, such as its web search, because logs
do not hold their results.
"""

import re
from collections.abc import Iterator

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from agentworld.data.importers.base import Importer, ImportOptions, ImportResult, read_rows
from agentworld.data.importers.content import spans_of, text_of
from agentworld.data.importers.events import Episode, Event
from agentworld.data.importers.messages import MessagesOptions, ToolCall, action_of
from agentworld.data.importers.paths import first_text, list_in, text_at
from agentworld.data.importers.tools import tools_of
from agentworld.errors import InputError
from agentworld.storage.source import SourceFile

_LISTS = ("messages", "trajectory", "conversation", "history")
_TASKS = ("task_id", "instance_id")
_MODELS = ("model", "info.model")
_USES = ("tool_use", "mcp_tool_use")
_RESULTS = ("tool_result", "mcp_tool_result")
_REFUSALS = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
)
"""How Claude Code's answers begin if the tool did not run."""
_MARKS = {
    "reminder": re.compile(
        r"<system-reminder>(?:(?!<system-reminder>).)*?</system-reminder>", re.DOTALL
    ),
    "cut": re.compile(
        r"\.\.\. \[\d+ (?:lines|characters) truncated\] \.\.\."
        r"|<persisted-output>\n[^\n]*\n+Preview[^\n]*\n|(?:\.\.\.\n)?</persisted-output>"
        r"|\[Old tool result content cleared\]"
    ),
}


class Message(BaseModel):
    """One message, or a part of one."""

    role: str
    content: JsonValue = None
    id: str | None = None
    model: str | None = None
    timestamp: str | float | None = None


class _ToolUse(BaseModel):
    name: str
    input: JsonValue = None
    id: str | None = None


class _Result(BaseModel):
    tool_use_id: str | None = None
    content: JsonValue = None
    is_error: bool | None = None


_MESSAGES = TypeAdapter(dict[str, Message])
_USE = TypeAdapter(dict[str, _ToolUse])
_RESULT = TypeAdapter(dict[str, _Result])


class Anthropic:
    """See `Importer`."""

    options = MessagesOptions

    def claims(self, value: JsonValue) -> bool:
        """Whether a message has a block with a tool's call or result."""
        try:
            messages = _messages(value, "").values()
        except (ValidationError, InputError):
            return False
        return any(
            kind_of(block) in _USES + _RESULTS for message in messages for block in blocks(message)
        )

    def read(self, file: SourceFile, options: ImportOptions, domain: str) -> Iterator[ImportResult]:
        """A row is a list of messages, or an object that has one."""
        settings = MessagesOptions.model_validate(options.model_dump())
        return read_rows(file, domain, lambda value: _episode(value, settings))


IMPORTER: Importer = Anthropic()


def _messages(value: JsonValue, path: str) -> dict[str, Message]:
    path, values = list_in(value, path, _LISTS, "messages")
    places = {f"{path}[{number}]": item for number, item in enumerate(values)}
    return _MESSAGES.validate_python(places)


def _episode(value: JsonValue, options: MessagesOptions) -> Episode:
    tools, problems = tools_of(value.get("tools") if isinstance(value, dict) else None)
    messages = _messages(value, options.messages)
    model = next((message.model for message in messages.values() if message.model), "")
    return Episode(
        source=options.source or first_text(value, _MODELS) or model or "anthropic",
        events=[*problems, *_events(messages, options.start)],
        tools=tools,
        task_id=text_at(value, options.task) if options.task else first_text(value, _TASKS),
        licence=options.licence,
    )


def _events(messages: dict[str, Message], start: str) -> Iterator[Event]:
    first = next((place for place, message in messages.items() if message.role == "user"), "")
    for place, message in messages.items():
        time = "" if message.timestamp is None else str(message.timestamp)
        for event in events_of(message, place, time):
            is_start = start == "user" and place == first and event.reason == _of("user")
            yield event._replace(role="start", reason="") if is_start else event


def events_of(message: Message, place: str, time: str) -> Iterator[Event]:
    """The events of one message."""
    for number, block in enumerate(blocks(message)):
        location = f"{place}.content[{number}]" if isinstance(message.content, list) else place
        kind = kind_of(block)
        if kind in _USES:
            use = _USE.validate_python({location: block})[location]
            action = action_of(ToolCall(function=use.name, arguments=use.input))
            yield Event(location, "action", action=action, call=use.id or "", time=time)
        elif kind in _RESULTS:
            result = _RESULT.validate_python({location: block})[location]
            yield from _observation(result, location, time)
        elif kind == "text":
            text = text_of([block], location)[0]
            if text.strip():
                yield Event(location, "left out", text, reason=_of(message.role))
        else:
            yield Event(location, "left out", reason=f"block: {kind}")


def _observation(result: _Result, place: str, time: str) -> Iterator[Event]:
    text, parts = text_of(result.content, place)
    yield from parts
    if text.startswith(_REFUSALS):
        yield Event(place, "left out", text, reason="call that the user refused")
        return
    if result.is_error:
        yield Event(f"{place}.is_error", "left out", reason="flag that a result is an error")
    spans = spans_of(text, _MARKS)
    is_cut = any(span.what == "cut" for span in spans)
    call = result.tool_use_id or ""
    yield Event(place, "observation", text, None, call, time, spans, is_cut)


def blocks(message: Message) -> list[JsonValue]:
    """The blocks of a message; a text is one block."""
    content = message.content
    return content if isinstance(content, list) else [] if content is None else [content]


def kind_of(block: JsonValue) -> str:
    """The type of a block; `text` for a string without a type."""
    if isinstance(block, str):
        return "text"
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else "unknown"


def _of(role: str) -> str:
    if role == "assistant":
        return "what the agent wrote beside its calls"
    return f"message of the {role}"
