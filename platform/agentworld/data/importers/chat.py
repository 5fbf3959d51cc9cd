"""Chats in which the observation is a message of the user: ReAct, ShareGPT, Terminus.

Records do not mark which part of a message comes from the environment; set the options. In a
ShareGPT chat with the role `function_call`, only calls are actions and only results observations.
"""

import re
from collections.abc import Iterator, Sequence

from pydantic import BaseModel, JsonValue, ValidationError

from agentworld.data.importers.base import Importer, ImportOptions, ImportResult, read_rows
from agentworld.data.importers.content import text_of
from agentworld.data.importers.events import NO_CALL, Episode, Event
from agentworld.data.importers.observations import observation_of
from agentworld.data.importers.paths import first_text, text_at, value_at
from agentworld.data.importers.replies import ReplyOptions, action_in
from agentworld.errors import InputError
from agentworld.storage.source import SourceFile

_LISTS = ("messages", "conversations", "conversation", "history", "state.history")
_TASKS = ("task_id", "instance_id", "task.task_id", "task")
_MODELS = ("model", "info.model")
_AGENTS = ("assistant", "gpt", "agent", "model", "ai")
_WORLDS = ("user", "human", "environment", "observation")
_CALL, _RESULT = "function_call", "observation"
_OBSERVATION = re.compile(r"\s*observation\s*:", re.IGNORECASE)
_OTHER_FORMS = ("tool_calls", "function_call", "tool_call_id")
_TERMINUS = ReplyOptions(action_json="commands.*.keystrokes")

_BEFORE = "what stands before the start"
_BESIDE = "what the agent wrote beside its action"
_NO_ACTION = "reply without an action"
_NO_ANSWER = "answer to a reply without an action"


class ChatOptions(ReplyOptions):
    """The places of fields in a record, and the marks of actions and observations."""

    messages: str = ""
    """Path of the list of messages, such as `state.history`."""
    role: str = ""
    """Field of a message that names its author. Default: `role`, else `from`."""
    text: str = ""
    """Field of a message that has its text. Default: `content`, else `value`."""
    task: str = ""
    """Path of the task's id; all trials of a task have the same. Default: `task_id`, else
    `instance_id`, `task.task_id` or `task`.
    """
    starts_after: str = ""
    """A text in a message of the user, such as the line after a worked example. The start of the
    episode is what follows its last occurrence in the first message that has it. Empty: the start
    is everything that the user writes before the first reply.
    """
    prefix: str = ""
    """Text before an observation, such as `Observation:` and a line feed. The import removes it. A
    message of the user without it is not an observation.
    """


class Message(BaseModel):
    """One message."""

    role: str
    content: JsonValue = None
    timestamp: str | float | None = None


class _Record(BaseModel):
    messages: list[Message]


class Chat:
    """See `Importer`."""

    options = ChatOptions

    def claims(self, value: JsonValue) -> bool:
        """Whether a user's message is named an observation, or replies have Terminus's commands."""
        if isinstance(value, dict) and "trajectory" in value:
            return False
        try:
            _, raw = _list(value, "")
            messages = _messages(raw, ChatOptions())
        except (ValidationError, InputError):
            return False
        texts = [message for message in messages if isinstance(message.content, str)]
        is_other = any(
            name in message for message in raw if isinstance(message, dict) for name in _OTHER_FORMS
        )
        return len(texts) == len(messages) and not is_other and _has_marks(messages)

    def read(self, file: SourceFile, options: ImportOptions, domain: str) -> Iterator[ImportResult]:
        """A row is a list of messages, or an object that has one."""
        settings = ChatOptions.model_validate(options.model_dump())
        return read_rows(file, domain, lambda value: _episode(value, settings))


IMPORTER: Importer = Chat()


def _has_marks(messages: Sequence[Message]) -> bool:
    replies = [str(message.content) for message in messages if message.role in _AGENTS]
    answers = [str(message.content) for message in messages if message.role in _WORLDS]
    return bool(replies) and (
        any(_OBSERVATION.match(text) for text in answers)
        or any(action_in(text, _TERMINUS).strip("[]") for text in replies)
    )


def _episode(value: JsonValue, options: ChatOptions) -> Episode:
    path, messages = _list(value, options.messages)
    return Episode(
        source=options.source or first_text(value, _MODELS) or "chat",
        events=list(_events(path, _messages(messages, options), options)),
        task_id=text_at(value, options.task) if options.task else first_text(value, _TASKS),
        licence=options.licence,
    )


def _list(value: JsonValue, path: str) -> tuple[str, list[JsonValue]]:
    """The list of messages, and the path at which it is."""
    for name in [path] if path or isinstance(value, list) else _LISTS:
        try:
            messages = value_at(value, name)
        except InputError:
            continue
        if isinstance(messages, list):
            return name or _LISTS[0], messages
    problem = f"{path} is no list of messages" if path else "it has no list of messages"
    raise InputError(f"{problem}; name its path with --set messages=PATH")


def _messages(values: Sequence[JsonValue], options: ChatOptions) -> list[Message]:
    first = next((value for value in values if isinstance(value, dict)), {})
    role = options.role or ("from" if "from" in first and "role" not in first else "role")
    text = options.text or ("value" if "value" in first and "content" not in first else "content")
    names = {"role": role, "content": text, "timestamp": "timestamp"}
    messages = [
        {field: value[name] for field, name in names.items() if name in value}
        if isinstance(value, dict)
        else value
        for value in values
    ]
    return _Record.model_validate({"messages": messages}).messages


def _events(path: str, messages: Sequence[Message], options: ChatOptions) -> Iterator[Event]:
    """Pairs each observation with the reply directly before it."""
    has_calls = any(message.role == _CALL for message in messages)
    agents = (_CALL,) if has_calls else _AGENTS
    is_started, call, reason = not options.starts_after, "", ""
    for number, message in enumerate(messages):
        place = f"{path}[{number}]"
        text, parts = text_of(message.content, place)
        yield from parts
        event = Event(place, "left out", text, time=_time(message))
        worlds = (_RESULT,) if has_calls and (call or reason) else _WORLDS
        if message.role not in (*agents, *worlds):
            yield event._replace(reason=f"message of the {message.role}")
        elif not is_started:
            before, mark, start = text.rpartition(options.starts_after)
            is_started = bool(mark) and message.role in worlds
            yield event._replace(text=before + mark if is_started else text, reason=_BEFORE)
            if is_started:
                yield event._replace(role="start", text=start)
        elif message.role in agents:
            action = action_in(text, options)
            call, reason = (place, "") if action else ("", _NO_ANSWER)
            yield from _reply(event, action)
        elif not (call or reason):
            yield event._replace(role="start")
        elif not text.startswith(options.prefix):
            yield event._replace(reason=f"message of the {message.role}")
        elif call:
            yield _observation(event, options, call)
            call, reason = "", NO_CALL
        else:
            yield event._replace(reason=reason)
    if not is_started:
        raise InputError(
            f"no user message contains {options.starts_after!r}; correct --set starts_after=TEXT"
        )


def _time(message: Message) -> str:
    return "" if message.timestamp is None else str(message.timestamp)


def _reply(event: Event, action: str) -> Iterator[Event]:
    if not action:
        yield event._replace(reason=_NO_ACTION)
        return
    if action != event.text.strip():
        yield event._replace(reason=_BESIDE)
    yield event._replace(role="action", text=action, call=event.place)


def _observation(event: Event, options: ChatOptions, call: str) -> Event:
    text, spans, is_cut = observation_of(event.text.removeprefix(options.prefix), options)
    return event._replace(role="observation", text=text, call=call, spans=spans, is_cut=is_cut)
