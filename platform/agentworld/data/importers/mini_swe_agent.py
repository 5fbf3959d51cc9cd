"""Trajectories of mini-swe-agent (`.traj.json`): chat messages of a shell.

In format 1 the command is a block of code in the agent's text, and the observation is a message of
the user. In format 1.1 and later a message lists its commands, also as calls of a tool. The import
drops the harness's answer to a message without exactly one command, and the submission.
"""

import re
from collections.abc import Iterator

from pydantic import BaseModel, JsonValue, TypeAdapter

from agentworld.data.importers.base import Importer, ImportOptions, ImportResult, read_rows
from agentworld.data.importers.content import spans_of, text_of
from agentworld.data.importers.events import Episode, Event
from agentworld.data.importers.messages import ToolCall, action_of
from agentworld.data.importers.paths import first_text, list_in, task_of
from agentworld.domains.base import Action, Call
from agentworld.storage.source import SourceFile

_FORMAT = "mini-swe-agent"
_TASKS = ("instance_id", "info.instance_id")
_MODEL = "info.config.model.model_name"
_COMMAND = re.compile(
    r"```(?:bash|mswea_bash_command)[^\S\n]*\n(.*?)\n```"
    r"|<mswea_bash_command>((?:(?!<mswea_bash_command>).)*?)</mswea_bash_command>",
    re.DOTALL,
)
_RESULTS = ("tool", "function_call_output")
_REFUSAL = "Command not executed"
_MARKS = {
    "template": re.compile(
        r"\A(?:<returncode>|Observation: )"
        r"|(?<=\d)</returncode>\n(?:<output>\n|<warning>\n[^<]*</warning>\s*<output_head>\n)"
        r"|</output(?:_tail)?>\s*\Z"
    ),
    "cut": re.compile(
        r"</output_head>\n<elided_chars>\n[^<]*</elided_chars>\n<output_tail>\n"
        r"|\.\.\. \[\d+ characters elided\] \.\.\."
    ),
}
"""Text that the harness's templates write around and into an output."""


class MiniSweAgentOptions(ImportOptions):
    """The places of fields in a record, if they are unusual."""

    messages: str = ""
    """Path of the list of messages. Default: `messages`."""
    task: str = ""
    """Path of the task's id; all trials of a task have the same. Default: `instance_id`, else
    `info.instance_id` or the name of a `.traj.json` file."""


class _Command(BaseModel):
    command: str
    tool_call_id: str | None = None


class _Extra(BaseModel):
    actions: list[_Command] | None = None
    interrupt_type: str | None = None
    timestamp: str | float | None = None


class _Message(BaseModel):
    role: str | None = None
    type: str | None = None
    content: JsonValue = None
    output: JsonValue = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    call_id: str | None = None
    extra: _Extra | None = None

    @property
    def speaker(self) -> str:
        """The role; an item of the Responses API has no role and is the agent's."""
        return self.role or self.type or "assistant"

    @property
    def time(self) -> str:
        """The time in the log's form."""
        time = self.extra.timestamp if self.extra else None
        return "" if time is None else str(time)


_MESSAGES = TypeAdapter(dict[str, _Message])


class MiniSweAgent:
    """See `Importer`."""

    options = MiniSweAgentOptions

    def claims(self, value: JsonValue) -> bool:
        """Whether the record names this format."""
        form = value.get("trajectory_format") if isinstance(value, dict) else None
        return isinstance(form, str) and form.startswith(_FORMAT)

    def read(self, file: SourceFile, options: ImportOptions, domain: str) -> Iterator[ImportResult]:
        """A row is an episode; a `.traj.json` file has one."""
        settings = MiniSweAgentOptions.model_validate(options.model_dump())
        return read_rows(file, domain, lambda value: _episode(value, file.name, settings))


IMPORTER: Importer = MiniSweAgent()


def _episode(value: JsonValue, name: str, options: MiniSweAgentOptions) -> Episode:
    path, values = list_in(value, options.messages, ("messages",), "messages")
    places = {f"{path}[{number}]": item for number, item in enumerate(values)}
    messages = _MESSAGES.validate_python(places)
    submission = first_text(value, ["info.submission"])
    return Episode(
        source=options.source or first_text(value, [_MODEL]) or "mini_swe_agent",
        events=list(_events(messages, submission)),
        task_id=task_of(value, options.task, _TASKS, name),
        licence=options.licence,
    )


def _events(messages: dict[str, _Message], submission: str) -> Iterator[Event]:
    is_open, last = False, next(reversed(messages), "")
    for place, message in messages.items():
        is_result = message.speaker in _RESULTS or (message.speaker == "user" and is_open)
        content = message.output if message.speaker == "function_call_output" else message.content
        text, parts = text_of(content, place)
        yield from parts
        if message.speaker == "assistant":
            actions = list(_actions(message, text, place))
            is_open = bool(actions)
            if text.strip():
                reason = "what the agent wrote beside its calls"
                yield Event(place, "left out", text, reason=reason)
            yield from actions
        elif not is_result:
            yield Event(place, "left out", text, reason=f"message of the {message.speaker}")
        elif place == last and text == submission:
            yield Event(place, "left out", text, reason="what the agent submitted")
        elif (message.extra and message.extra.interrupt_type) or text.startswith(_REFUSAL):
            yield Event(place, "left out", text, reason="message of the harness")
        else:
            is_open = message.speaker in _RESULTS
            yield _observation(message, text, place)


def _actions(message: _Message, text: str, place: str) -> Iterator[Event]:
    """The message's calls; without any, its listed commands, or the only command in its text."""
    for number, call in enumerate(message.tool_calls or []):
        location = f"{place}.tool_calls[{number}]"
        yield Event(location, "action", "", action_of(call), call.id or "", message.time)
    if message.tool_calls:
        return
    entries = message.extra.actions if message.extra else None
    if entries is None:
        commands = [(match[1] or match[2] or "").strip() for match in _COMMAND.finditer(text)]
        if len(commands) == 1:
            yield Event(place, "action", "", Action(commands[0]), "", message.time)
        return
    for number, entry in enumerate(entries):
        location, call_id = f"{place}.extra.actions[{number}]", entry.tool_call_id or ""
        calls = (Call("bash", {"command": entry.command}),)
        action = Action("", calls) if call_id else Action(entry.command)
        yield Event(location, "action", "", action, call_id, message.time)


def _observation(message: _Message, text: str, place: str) -> Event:
    call, spans = message.tool_call_id or message.call_id or "", spans_of(text, _MARKS)
    is_cut = any(span.what == "cut" for span in spans)
    return Event(place, "observation", text, None, call, message.time, spans, is_cut)
