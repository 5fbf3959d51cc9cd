"""Recordings of asciinema (asciicast 2 and 3) whose input an agent typed.

Most recordings hold no input, so actions are unknown. The import reads a recording only if it has
input and you set `typed_by: agent`.
"""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple

from pydantic import BaseModel, Field, JsonValue

from agentworld.data.importers.base import Importer, ImportOptions, ImportResult, convert_record
from agentworld.data.importers.events import Episode, Event
from agentworld.data.importers.rows import rows_of
from agentworld.data.secret_search import redact_start
from agentworld.domains.base import Action
from agentworld.errors import InputError
from agentworld.storage.source import SourceFile

_RELATIVE = 3
_MOST_OF_ROW = 80
_ENDS = ("\r", "\n", "\x03", "\x04", "\x1a")
"""Keys that send a line, or interrupt, end or stop a program."""


class AsciinemaOptions(ImportOptions):
    """Who typed."""

    typed_by: Literal["", "agent"] = ""
    """`agent`: an agent typed the input. Without it the import reads nothing."""


class _Header(BaseModel):
    version: Literal[2, 3]
    timestamp: float | None = Field(None, ge=0, lt=1e12)
    title: str | None = None


class _Part(NamedTuple):
    """One line of a recording after its header."""

    place: str
    time: float
    code: str
    text: str


class Asciinema:
    """See `Importer`."""

    options = AsciinemaOptions

    def claims(self, value: JsonValue) -> bool:
        """Whether the row is the header of a recording, of any version."""
        fields = value if isinstance(value, dict) else {}
        return fields.get("version") in (1, 2, 3) and not {"width", "term"}.isdisjoint(fields)

    def read(self, file: SourceFile, options: ImportOptions, domain: str) -> Iterator[ImportResult]:
        """A header begins a recording; a line that cannot be read is a problem of its own."""
        settings = AsciinemaOptions.model_validate(options.model_dump())
        place, header, rows = "", None, list[tuple[str, JsonValue]]()
        for row in rows_of(file):
            if row.problem:
                yield ImportResult(row.place, problem=row.problem)
            elif isinstance(row.value, dict):
                if place:
                    convert = partial(_episode, header, rows, settings)
                    yield convert_record(place, convert, domain)
                place, header, rows = row.place or "the file", row.value, []
            elif place:
                rows.append((row.place, row.value))
            else:
                yield ImportResult(
                    row.place, problem="no header comes before it; start the file with one"
                )
        if place:
            yield convert_record(place, partial(_episode, header, rows, settings), domain)


IMPORTER: Importer = Asciinema()


def _episode(
    header: JsonValue, rows: Sequence[tuple[str, JsonValue]], options: AsciinemaOptions
) -> Episode:
    recording = _Header.model_validate(header)
    parts = list(_parts(recording, rows))
    if not any(part.code == "i" for part in parts):
        raise InputError("it has no 'i' event, so it shows no action; record the input too")
    if not options.typed_by:
        raise InputError("it does not say who typed; add --set typed_by=agent if the agent did")
    return Episode(
        source=options.source or "asciinema",
        events=list(_events(parts)),
        task_id=recording.title or "",
        licence=options.licence,
    )


def _parts(header: _Header, rows: Sequence[tuple[str, JsonValue]]) -> Iterator[_Part]:
    """The lines, with times in seconds since the start of the recording, or since the epoch."""
    begin = elapsed = header.timestamp or 0.0
    for place, row in rows:
        match row:
            case [int() | float() as time, str(code), str(text)] if abs(time) < 1e12:
                elapsed = (elapsed if header.version == _RELATIVE else begin) + time
                yield _Part(place, elapsed, code, text)
            case _:
                start = redact_start(json.dumps(row), _MOST_OF_ROW)
                raise InputError(
                    f"{place}: the event is not [time, code, text]; correct it (got {start})"
                )


def _events(parts: Sequence[_Part]) -> Iterator[Event]:
    """Makes an action from the input up to the end of a line.

    Its observation is the output from its first key to the first key of the next action, because
    the terminal echoes keys.
    """
    keys, output = list[_Part](), list[_Part]()
    is_typing = has_acted = False
    for part in parts:
        if part.code == "i":
            if not is_typing:
                yield from _screen(output, has_acted=has_acted)
                output = []
            keys.append(part)
            is_typing = not part.text.endswith(_ENDS)
            if not is_typing:
                yield _to_action(keys)
                keys, has_acted = [], True
        elif part.code == "o":
            output.append(part)
        else:
            yield Event(
                part.place, "left out", part.text, reason=f"event: {redact_start(part.code, 20)}"
            )
    yield from _screen(output, has_acted=has_acted)
    if keys:
        text = "".join(key.text for key in keys)
        yield Event(keys[0].place, "left out", text, reason="input without a line's end")


def _to_action(keys: Sequence[_Part]) -> Event:
    text = "".join(key.text for key in keys).rstrip("\r\n")
    return Event(keys[0].place, "action", action=Action(text), time=str(keys[-1].time))


def _screen(parts: Sequence[_Part], *, has_acted: bool) -> Iterator[Event]:
    if parts:
        text = "".join(part.text for part in parts)
        role: Literal["observation", "start"] = "observation" if has_acted else "start"
        yield Event(parts[0].place, role, text, time=str(parts[-1].time))
