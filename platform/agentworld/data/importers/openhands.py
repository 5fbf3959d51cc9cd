"""Events of OpenHands, in the layouts of 2024 and 2025, and of its SDK (V1).

A row is a list of events or an object with one; in an array or lines of single events, the file is
one episode. In the layout of 2024 an action and its observation may be a list of two. The SDK keeps
an event a file: those of a folder `events` are one episode.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain

from pydantic import JsonValue, TypeAdapter

from agentworld.data.importers.base import (
    Importer,
    ImportOptions,
    ImportResult,
    read_row,
)
from agentworld.data.importers.events import Episode
from agentworld.data.importers.openhands_events import HARNESS, WORLD, OpenHandsEvent, events_of
from agentworld.data.importers.openhands_sdk import (
    SdkEvent,
    is_of_sdk,
    sdk_events_of,
    tools_of_system,
)
from agentworld.data.importers.paths import first_text, list_in, text_at
from agentworld.data.importers.rows import Row, rows_of
from agentworld.data.importers.tools import tools_of
from agentworld.storage.source import SourceFile, files_of

_LISTS = ("history", "trajectory", "events")
_EVENT_FILE = re.compile(r"(.*/)?events/event-\d+(-[^/]*)?\.json")
_TASKS = ("instance_id", "instance.instance_id", "task_id")
_MODEL = "metadata.llm_config.model"


class OpenHandsOptions(ImportOptions):
    """The places of fields in a record, if they are unusual."""

    events: str = ""
    """Path of the list of events, such as `result.history`. Default: `history`, else `trajectory`
    or `events`."""
    task: str = ""
    """Path of the task's id; all trials of a task have the same. Default: `instance_id`, else
    `instance.instance_id`, `task_id`, or owner, repository and number under `issue`."""


_BY_PLACE = TypeAdapter(dict[str, OpenHandsEvent])
_SDK_BY_PLACE = TypeAdapter(dict[str, SdkEvent])


class OpenHands:
    """See `Importer`."""

    options = OpenHandsOptions

    def claims(self, value: JsonValue) -> bool:
        """Whether all events are of OpenHands' kinds."""
        if isinstance(value, dict):
            value = next((value[name] for name in _LISTS if value.get(name)), value)
        events = _flat(value if isinstance(value, list) else [value])
        return bool(events) and all(map(_is_of_openhands, events))

    def read(self, file: SourceFile, options: ImportOptions, domain: str) -> Iterator[ImportResult]:
        """A row is an episode; rows of single events form one episode together."""
        settings = OpenHandsOptions.model_validate(options.model_dump())
        convert, parts = partial(_episode, options=settings), list[JsonValue]()
        for row in chain.from_iterable(map(rows_of, _of_one_episode(file))):
            if not row.problem and _is_part(row):
                parts.append(row.value)
            else:
                yield read_row(row, domain, convert)
        if parts:
            yield read_row(Row("", parts), domain, convert)


IMPORTER: Importer = OpenHands()


def _of_one_episode(file: SourceFile) -> list[SourceFile]:
    """For the first file of a folder of events, all its files; for the others none."""
    if not _EVENT_FILE.fullmatch(file.name):
        return [file]
    folder = file.address.rpartition("/")[0]
    if _event_files(folder)[0].address == file.address:
        _event_files.cache_clear()  # an earlier import may have listed it
    first, *others = _event_files(folder)
    return [file, *others] if first.address == file.address else []


@lru_cache(1)
def _event_files(folder: str) -> list[SourceFile]:
    files = files_of(folder)
    return [file for file in files if _EVENT_FILE.fullmatch(f"events/{file.name}")]


def _flat(values: Sequence[JsonValue]) -> list[JsonValue]:
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


def _is_of_openhands(value: JsonValue) -> bool:
    if is_of_sdk(value):
        return True
    if not isinstance(value, dict) or "role" in value:
        return False
    kinds = [value[name] for name in ("action", "observation") if name in value]
    return len(kinds) == 1 and isinstance(kinds[0], str) and kinds[0] in HARNESS | WORLD


def _is_part(row: Row) -> bool:
    """Whether the row is only an event of an episode, or an action with its observation."""
    if isinstance(row.value, list) and row.place.startswith("element"):
        return len(row.value) == 2 and all(map(_is_event, row.value))
    return _is_event(row.value)


def _is_event(value: JsonValue) -> bool:
    if is_of_sdk(value):
        return True
    return isinstance(value, dict) and ("action" in value or "observation" in value)


def _episode(value: JsonValue, options: OpenHandsOptions) -> Episode:
    path, values = list_in(value, options.events, _LISTS, "events")
    if values and is_of_sdk(values[0]):
        return _sdk_episode(
            value, _SDK_BY_PLACE.validate_python(dict(_places(values, path))), options
        )
    events = _BY_PLACE.validate_python(dict(_places(values, path)))
    systems = [event.arguments for event in events.values() if event.action == "system"]
    tools, problems = tools_of(systems[0].get("tools") if systems else None)
    models = (_model(event) for event in events.values())
    return Episode(
        source=options.source
        or first_text(value, [_MODEL])
        or next(filter(None, models), "openhands"),
        events=[*problems, *events_of(events)],
        tools=tools,
        task_id=text_at(value, options.task) if options.task else _task(value),
        licence=options.licence,
    )


def _sdk_episode(
    value: JsonValue, events: Mapping[str, SdkEvent], options: OpenHandsOptions
) -> Episode:
    tools, problems = tools_of(tools_of_system(events))
    return Episode(
        source=options.source or first_text(value, [_MODEL]) or "openhands",
        events=[*problems, *sdk_events_of(events)],
        tools=tools,
        task_id=text_at(value, options.task) if options.task else _task(value),
        licence=options.licence,
    )


def _task(value: JsonValue) -> str:
    issue = [first_text(value, [f"issue.{name}"]) for name in ("owner", "repo", "number")]
    return first_text(value, _TASKS) or ("/".join(issue) if all(issue) else "")


def _places(values: Sequence[JsonValue], path: str) -> Iterator[tuple[str, JsonValue]]:
    for number, value in enumerate(values):
        if isinstance(value, list):
            yield from ((f"{path}[{number}][{place}]", part) for place, part in enumerate(value))
        else:
            yield f"{path}[{number}]", value


def _model(event: OpenHandsEvent) -> str:
    metadata = event.tool_call_metadata
    return first_text(metadata.model_response, ["model"]) if metadata else ""
