"""Sessions of Claude Code; a file is a session.

Each sub-agent of a session is a separate episode and has the session's task. A message may take
several lines, one for each of its blocks. Repeated lines and blocks, for example in a resumed
session, are copies and are left out. If a user went back to an earlier message, the actions after
that message had already changed the world, so all lines are read in order.

The lines that `claude --output-format stream-json` writes are read too.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import AliasChoices, BaseModel, Field, JsonValue, ValidationError

from agentworld.data.importers.anthropic import Message, events_of
from agentworld.data.importers.base import Importer, ImportOptions, ImportResult, read_row
from agentworld.data.importers.content import text_of
from agentworld.data.importers.events import Episode, Event
from agentworld.data.importers.rows import Row, rows_of
from agentworld.data.secret_search import redacted_problem
from agentworld.storage.source import SourceFile

_OF_SESSIONS = frozenset({"sessionId", "session_id", "leafUuid", "isSnapshotUpdate"})
"""Each line of a session has one of these fields."""
_MESSAGES = ("user", "assistant")
_HARNESS = "<synthetic>"
"""The model's name in messages that Claude Code itself writes."""


class _Line(BaseModel):
    type: str
    uuid: str | None = None
    parent: str | None = Field(None, validation_alias="parentUuid")
    session: str | None = Field(None, validation_alias=AliasChoices("sessionId", "session_id"))
    agent: str | None = Field(None, validation_alias=AliasChoices("agentId", "parent_tool_use_id"))
    is_sidechain: bool | None = Field(None, validation_alias="isSidechain")
    is_meta: bool | None = Field(None, validation_alias="isMeta")
    is_summary: bool | None = Field(None, validation_alias="isCompactSummary")
    timestamp: str | float | None = None
    message: Message | None = None


class ClaudeCode:
    """See `Importer`."""

    options = ImportOptions

    def claims(self, value: JsonValue) -> bool:
        """Whether the line is of a session."""
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            return False
        return not _OF_SESSIONS.isdisjoint(value)

    def read(self, file: SourceFile, options: ImportOptions, domain: str) -> Iterator[ImportResult]:
        """First the lines that cannot be read, then the session, then its sub-agents."""
        session = _Session()
        for row in rows_of(file):
            problem = row.problem or session.add(row)
            if problem:
                yield ImportResult(row.place, problem=problem)
        for agent in session.agents:
            place = f"agent {agent}" if agent else ""
            yield read_row(
                Row(place, agent), domain, lambda value: session.episode(str(value), options)
            )


IMPORTER: Importer = ClaudeCode()


@dataclass
class _Session:
    """The parts of a session that were read so far."""

    agents: dict[str, list[Event]] = field(default_factory=dict)
    """The events of each sub-agent by name; the agent itself has the empty name."""
    _models: dict[str, str] = field(default_factory=dict)
    _task: str = ""
    _agent: str = ""
    _roots: dict[str, str] = field(default_factory=dict)
    """For each line of an unnamed sub-agent, the first line of its chain of parents."""
    _uuids: set[str] = field(default_factory=set)
    _blocks: set[bytes] = field(default_factory=set)

    def add(self, row: Row) -> str:
        """Adds a line; returns its problem, if it has one."""
        try:
            line = _Line.model_validate(row.value)
            events = list(self._events(line, row.place))
            for event in events:
                _text_of(event).encode()
        except ValidationError as error:
            return redacted_problem(error)
        except RecursionError:
            return "it is nested too deeply"
        except UnicodeEncodeError:
            return "a text in it is no Unicode: it holds half of a surrogate pair"
        if line.message:
            self._agent = self._agent_of(line)
        self.agents.setdefault(self._agent, []).extend(events)
        if line.message and line.message.model not in (None, _HARNESS):
            self._models.setdefault(self._agent, line.message.model or "")
        self._task = self._task or line.session or ""
        return ""

    def episode(self, agent: str, options: ImportOptions) -> Episode:
        """The episode of one of the agents."""
        return Episode(
            source=options.source or self._models.get(agent) or "claude_code",
            events=self.agents[agent],
            task_id=self._task,
            licence=options.licence,
        )

    def _agent_of(self, line: _Line) -> str:
        if line.is_sidechain is False or not (line.is_sidechain or line.agent):
            return ""
        if line.agent:
            return line.agent
        root = self._roots.get(line.parent or "", line.uuid or "without a name")
        if line.uuid:
            self._roots[line.uuid] = root
        return root

    def _events(self, line: _Line, place: str) -> Iterator[Event]:
        reason = self._reason_to_leave_out(line)
        if line.message is None or reason:
            text = text_of(line.message.content, place)[0] if line.message else ""
            yield Event(place, "left out", text, reason=reason)
            return
        time = "" if line.timestamp is None else str(line.timestamp)
        for event in events_of(line.message, f"{place} message", time):
            is_copy = event.role in ("action", "observation") and self._is_copy(line.message, event)
            reason = "copy of an earlier block"
            yield Event(event.place, "left out", event.text, reason=reason) if is_copy else event

    def _reason_to_leave_out(self, line: _Line) -> str:
        if line.message is None or line.type not in _MESSAGES:
            return "line that is no message"
        if line.uuid in self._uuids:
            return "copy of an earlier line"
        if line.uuid:
            self._uuids.add(line.uuid)
        if line.is_summary:
            return "summary of a compaction"
        is_of_harness = line.is_meta or line.message.model == _HARNESS
        return "message of the harness" if is_of_harness else ""

    def _is_copy(self, message: Message, event: Event) -> bool:
        content = repr((message.id, event.role, event.call, event.text, event.action))
        digest = hashlib.sha256(content.encode()).digest()
        if not event.call or digest not in self._blocks:
            self._blocks.add(digest)
            return False
        return True


def _text_of(event: Event) -> str:
    """The text that a turn would have."""
    if event.role == "left out":
        return ""
    calls = event.action.calls if event.action else ()
    return json.dumps([event.text, [call.arguments for call in calls]], ensure_ascii=False)
