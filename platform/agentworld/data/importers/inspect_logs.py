"""Reads the samples of a log of Inspect AI: JSON, or an `.eval` file, which is a zip of JSON."""

import io
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from pydantic import BaseModel, JsonValue, ValidationError

from agentworld.data.importers.messages import Message
from agentworld.data.importers.rows import Row, document_of, rows_of
from agentworld.data.importers.zips import Zip, open_zip
from agentworld.data.secret_search import redacted_problem
from agentworld.errors import InputError
from agentworld.storage.source import SourceFile

SUFFIX = ".eval"
_HEADERS = ("header.json", "_journal/start.json")
"""The header's file in a finished log, and in an unfinished one."""
_SAMPLE = re.compile(r"samples/.+_epoch_\d+(?P<chunks>/sample)?\.json", re.DOTALL)
_ATTACHMENT = re.compile(r"attachment://([0-9a-f]{32})")


class Evaluation(BaseModel):
    """The fields of a log that hold for all its samples."""

    task: str
    model: str = ""


class ToolError(BaseModel):
    """An error in place of a result."""

    type: str = ""
    message: str = ""


class LoggedMessage(Message):
    """A message, which may be an error of a tool."""

    error: ToolError | None = None


class ToolEvent(BaseModel):
    """An executed call."""

    id: str
    function: str
    arguments: JsonValue = None
    result: JsonValue = None
    error: ToolError | None = None
    truncated: JsonValue = None
    """The length before and after the truncation."""
    pending: bool | None = None
    timestamp: str = ""
    completed: str | None = None


class Exchanges(BaseModel):
    """The calls and results of a sample, as messages and as events."""

    messages: list[LoggedMessage]
    events: list[ToolEvent | None]
    """Tool events; null for an event of another kind."""


class Sample(BaseModel):
    """One episode, without its target, scores, metadata and store, which contain the solution."""

    id: int | str
    messages: list[Any] = []
    events: list[Any] = []
    attachments: dict[str, str] = {}
    error: Any = None
    error_retries: list[Any] | None = None

    @property
    def exchanges(self) -> Exchanges:
        """The calls and results; raises ValidationError, or InputError for a missing attachment."""
        tool_events = [event if _is(event, "tool") else None for event in self.events]
        fields = {"messages": self.messages, "events": tool_events}
        return Exchanges.model_validate(_resolve(fields, self.attachments))

    @property
    def tools(self) -> list[JsonValue]:
        """The tools that its models were offered, without repetitions."""
        offers = [event.get("tools") for event in self.events if _is(event, "model")]
        tools = [tool for offer in offers if isinstance(offer, list) for tool in offer]
        distinct = list({repr(tool): tool for tool in tools}.values())
        return cast(list[JsonValue], _resolve(distinct, self.attachments))


def _is(event: object, kind: str) -> bool:
    return isinstance(event, dict) and event.get("event") == kind


def _resolve(value: Any, attachments: Mapping[str, str]) -> Any:
    """Replaces references to attachments by their texts; raises InputError if one is missing."""
    match value:
        case dict():
            return {key: _resolve(item, attachments) for key, item in value.items()}
        case list():
            return [_resolve(item, attachments) for item in value]
        case str() if match := _ATTACHMENT.fullmatch(value):
            if match[1] not in attachments:
                raise InputError(f"attachments has no {match[1]}; export the log again")
            return attachments[match[1]]
    return value


class LoggedSample(NamedTuple):
    """A sample, or the problem of the sample or of its log."""

    evaluation: Evaluation
    row: Row


class _Log(BaseModel):
    eval: Evaluation
    samples: list[Any] | None = None


_UNKNOWN = Evaluation(task="")


def samples_of(file: SourceFile) -> Iterator[LoggedSample]:
    """The samples of a log; a member of a zip is decompressed when its turn comes."""
    return _of_zip(file) if file.suffix == SUFFIX else _of_json(file)


def _of_json(file: SourceFile) -> Iterator[LoggedSample]:
    for row in rows_of(file):
        log = _log(row)
        if isinstance(log, Row):
            yield LoggedSample(_UNKNOWN, log)
            continue
        for number, sample in enumerate(log.samples or []):
            location = f"samples[{number}]"
            place = f"{row.place}, {location}" if row.place else location
            yield LoggedSample(log.eval, Row(place, sample))


def _of_zip(file: SourceFile) -> Iterator[LoggedSample]:
    try:
        with open_zip(file) as archive:
            log = _header(archive)
            if isinstance(log, Row):
                yield LoggedSample(_UNKNOWN, log)
                return
            for name in archive.names:
                if match := _SAMPLE.fullmatch(name):
                    row = _in_chunks(name) if match["chunks"] else _member(archive, name)
                    yield LoggedSample(log.eval, row)
    except InputError as error:
        yield LoggedSample(_UNKNOWN, Row("", problem=str(error)))


def _header(archive: Zip) -> _Log | Row:
    name = next((header for header in _HEADERS if header in archive.names), "")
    return (
        _log(_member(archive, name))
        if name
        else Row("", problem=f"the log has no {' or '.join(_HEADERS)}; export it again")
    )


def _member(archive: Zip, name: str) -> Row:
    try:
        return document_of(io.BytesIO(archive.read(name)))._replace(place=name)
    except InputError as error:
        return Row(name, problem=str(error))


def _in_chunks(name: str) -> Row:
    problem = "the sample is stored in chunks; write the log as JSON with `inspect log dump`"
    return Row(name, problem=problem)


def _log(row: Row) -> _Log | Row:
    if row.problem:
        return row
    try:
        return _Log.model_validate(row.value)
    except ValidationError as error:
        return Row(row.place, problem=redacted_problem(error))
