"""Reads the rows of a file: JSON lines, the elements of a JSON array, or one JSON document.

A row that cannot be read has a problem in place of its value; the rows after it are still read.
"""

import codecs
import json
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedIOBase
from typing import NamedTuple, cast

from pydantic import JsonValue

from agentworld.storage.source import UNREADABLE, SourceFile

MOST_ROW_BYTES = 1 << 26
MOST_DOCUMENT_BYTES = 1 << 30
_HEAD_BYTES = 1 << 16
_BOM = b"\xef\xbb\xbf"
_LINES = (".jsonl", ".ndjson")
_BLANK = b" \t\r\n"
_json = json.JSONDecoder()


class Row(NamedTuple):
    """One value of a file."""

    place: str
    """The place of the row, such as `line 3`; empty for a whole file."""
    value: JsonValue = None
    problem: str = ""
    """Why the row has no value."""


def rows_of(file: SourceFile) -> Iterator[Row]:
    """Yields the rows in order; memory is bounded by the longest row."""
    try:
        with file.open() as stream:
            head = _head(stream)
        with file.open() as stream:
            yield from _rows(stream, head.removeprefix(_BOM).lstrip(_BLANK), file.suffix)
    except UNREADABLE as error:
        yield Row("", problem=f"the file cannot be read to its end: {error}")


def _head(stream: BufferedIOBase) -> bytes:
    """The start of a file; of a damaged file, the part that can be read."""
    head = b""
    with suppress(*UNREADABLE):
        while len(head) < _HEAD_BYTES and (piece := stream.read1(_HEAD_BYTES)):
            head += piece
    return head


def _rows(stream: BufferedIOBase, head: bytes, suffix: str) -> Iterator[Row]:
    if not head:
        stream.read(1)  # raises for a damaged file
        yield Row("", problem="the file is empty")
    elif suffix in _LINES or (head[:1] != b"[" and _begins_with_lines(head)):
        yield from _lines(stream)
    elif head[:1] == b"[":
        yield from _elements(stream)
    else:
        yield document_of(stream)


def _begins_with_lines(head: bytes) -> bool:
    """Whether the first line is a complete value, and another value follows."""
    line, _, rest = head.partition(b"\n")
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return bool(rest.strip(_BLANK))


def _lines(stream: BufferedIOBase) -> Iterator[Row]:
    number = 0
    while line := stream.readline(MOST_ROW_BYTES + 1):
        number += 1
        place = f"line {number}"
        if len(line) > MOST_ROW_BYTES:
            yield Row(place, problem=f"it is longer than {MOST_ROW_BYTES:,} bytes; split it")
            while not line.endswith(b"\n") and line:
                line = stream.readline(MOST_ROW_BYTES)
            continue
        if number == 1:
            line = line.removeprefix(_BOM)
        if line.strip(_BLANK):
            yield from _values(place, line)


def _values(place: str, line: bytes) -> Iterator[Row]:
    """The values of a line; concurrent writers of a harness may put several on one line."""
    try:
        text, position, number = line.decode().strip(), 0, 0
        while position < len(text):
            value, position = _json.raw_decode(text, position)
            number += 1
            yield Row(place if number == 1 else f"{place}, value {number}", value)
            while position < len(text) and text[position].isspace():
                position += 1
    except (ValueError, RecursionError) as error:
        yield Row(place, problem=_problem(error))


def _elements(stream: BufferedIOBase) -> Iterator[Row]:
    """The elements of an array, each decoded when it has been read completely."""
    text, number = _Text(stream), 0
    try:
        text.skip("[")
        is_more = not text.skip("]")
        while is_more:
            yield Row(f"element {number}", text.value())
            number += 1
            is_more = text.skip(",")
            if not is_more and not text.skip("]"):
                raise ValueError("the array does not end")
        if not text.is_at_end():
            raise ValueError("more follows the array")
    except (ValueError, RecursionError) as error:
        yield Row(f"element {number}", problem=f"{_problem(error)}; the rest was not read")


class _Text:
    """A stream's text; it keeps only as much in memory as one value needs."""

    def __init__(self, stream: BufferedIOBase) -> None:
        self._stream = stream
        # A wrong byte becomes what no text of a record may hold, so that one element is refused.
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._text = ""
        self._position = 0
        self._is_whole = False

    def skip(self, mark: str) -> bool:
        """Skips blanks and the mark; false if something else comes first."""
        while (start := self._after_blanks()) == len(self._text) and not self._is_whole:
            self._read(_HEAD_BYTES)
        self._position = start
        if not self._text.startswith(mark, start):
            return False
        self._position += len(mark)
        return True

    def is_at_end(self) -> bool:
        """Whether only blanks are left."""
        self.skip("")
        return self._position == len(self._text)

    def value(self) -> JsonValue:
        """The next value; raises ValueError if there is none."""
        self.skip("")
        size = _HEAD_BYTES
        while True:
            try:
                value, end = _json.raw_decode(self._text, self._position)
            except ValueError:
                if self._is_whole or len(self._text) > MOST_ROW_BYTES:
                    raise
            else:
                if end < len(self._text) or self._is_whole:  # otherwise a number may be incomplete
                    self._position = end
                    return cast(JsonValue, value)
            self._read(size)
            size *= 2

    def _after_blanks(self) -> int:
        position, end = self._position, len(self._text)
        while position < end and self._text[position] in " \t\r\n":
            position += 1
        return position

    def _read(self, size: int) -> None:
        piece = self._stream.read1(size)
        self._is_whole = not piece
        text = self._decoder.decode(piece, final=self._is_whole)
        self._text, self._position = self._text[self._position :] + text, 0


def document_of(stream: BufferedIOBase) -> Row:
    """The only value of a stream."""
    data = stream.read(MOST_DOCUMENT_BYTES + 1)
    if len(data) > MOST_DOCUMENT_BYTES:
        return Row(
            "", problem=f"the document is longer than {MOST_DOCUMENT_BYTES:,} bytes; split it"
        )
    try:
        return Row("", json.loads(data.removeprefix(_BOM)))
    except (ValueError, RecursionError) as error:
        return Row("", problem=_problem(error))


def _problem(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8: {error.reason} at byte {error.start}"
    return f"it is not JSON: {error.msg if isinstance(error, json.JSONDecodeError) else error}"
