"""Trajectories in ATIF, as Harbor's agents write them: a document, or rows of a file.

A trajectory that continues in another file is one episode.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import Literal

from pydantic import JsonValue, ValidationError

from agentworld.data.importers.atif_events import events_of_document
from agentworld.data.importers.atif_records import Document
from agentworld.data.importers.base import Importer, ImportOptions, ImportResult, read_row
from agentworld.data.importers.events import Episode, Event
from agentworld.data.importers.harbor import content_of, is_other_record, is_trajectory, task_of
from agentworld.data.importers.paths import first_text, text_at
from agentworld.data.importers.rows import rows_of
from agentworld.data.importers.tools import tools_of
from agentworld.storage.source import SourceFile

_TASKS = ("extra.task_id", "extra.task_name", "extra.instance_id")
_CONTINUATION = re.compile(r"(?P<start>.+)\.cont-(?P<number>\d+)(?P<end>\.json.*)")
_FORMS = (".json", ".jsonl", ".ndjson")


class AtifOptions(ImportOptions):
    """The paths and the start of a trajectory."""

    task: str = ""
    """Path of the task's id; all trials of a task have the same. Default: Harbor's name of the
    task, else `extra.task_id`, `extra.task_name` or `extra.instance_id`.
    """
    start: Literal["nothing", "user"] = "nothing"
    """The start of an episode: nothing, or the first message of the user."""


class Atif:
    """See `NamedImporter`."""

    options = AtifOptions

    def claims_name(self, file: SourceFile) -> bool:
        """By Harbor's names of files, because its folders have other JSON files too."""
        return is_trajectory(file)

    def claims(self, value: JsonValue) -> bool:
        """Whether a row is a trajectory of any version, so that an unsupported one is reported."""
        version = value.get("schema_version") if isinstance(value, dict) else None
        return isinstance(version, str) and version.startswith("ATIF-")

    def read(self, file: SourceFile, options: ImportOptions, domain: str) -> Iterator[ImportResult]:
        """A row is a trajectory; other files of Harbor are skipped."""
        settings = AtifOptions.model_validate(options.model_dump())
        is_other = is_other_record(file)
        if (is_other and file.suffix not in _FORMS) or _is_continuation(file):
            return
        for row in rows_of(file):
            if not is_other or self.claims(row.value):
                yield read_row(row, domain, partial(_episode, file=file, options=settings))


IMPORTER: Importer = Atif()


def _episode(value: JsonValue, file: SourceFile, options: AtifOptions) -> Episode:
    document = Document.model_validate(value)
    tools, problems = tools_of(_definitions(document))
    has_start = options.start == "user"
    events = events_of_document(document, has_start=has_start)
    return Episode(
        source=options.source or document.agent.model_name or document.agent.name,
        events=[*problems, *events, *_read_continuations(document, file)],
        tools=tools,
        task_id=text_at(value, options.task) if options.task else _task(value, file),
        licence=options.licence,
    )


def _task(value: JsonValue, file: SourceFile) -> str:
    return task_of(file) or first_text(value, _TASKS)


def _definitions(document: Document) -> list[JsonValue]:
    own = document.agent.tool_definitions or []
    subagents = document.subagent_trajectories or []
    return [*own, *(tool for subagent in subagents for tool in _definitions(subagent))]


def _read_continuations(document: Document, file: SourceFile) -> Iterator[Event]:
    """The events of the files that continue a document, in order."""
    read = {_name_of(file)}
    while name := document.continued_trajectory_ref:
        following = None if "/" in name or name in read else _document_in(file.sibling(name))
        if following is None:
            reason = "continuation that cannot be read"
            yield Event("continued_trajectory_ref", "left out", reason=reason)
            return
        yield from events_of_document(following, f"{name}: ")
        read.add(name)
        document = following


def _is_continuation(file: SourceFile) -> bool:
    """Whether an earlier file names this file as its continuation and is read with it."""
    match = _CONTINUATION.fullmatch(_name_of(file))
    if not match:
        return False
    number = int(match["number"]) - 1
    before = file.sibling(f"{match['start']}{f'.cont-{number}' if number else ''}{match['end']}")
    document = _document_in(before)
    return document is not None and document.continued_trajectory_ref == _name_of(file)


def _document_in(file: SourceFile) -> Document | None:
    try:
        return Document.model_validate(content_of(file))
    except (ValidationError, RecursionError):
        return None


def _name_of(file: SourceFile) -> str:
    return file.address.rpartition("/")[2]
