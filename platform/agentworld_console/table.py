"""A list as a table of a page and as CSV: one definition, read in parts."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

from agentworld.reports.visible import visible_lines

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Link(NamedTuple):
    """A cell with a link."""

    text: str
    href: str
    whole: str = ""
    """The CSV value of a shortened text."""


class Mark(NamedTuple):
    """A cell with a colour for its rating."""

    text: str
    state: Literal["good", "wait", "bad"]


Cell = str | int | float | Link | Mark | None
Row = tuple[Cell, ...]


class Part(NamedTuple):
    """Some rows, and the cursor of the next ones; empty at the end."""

    rows: list[Row]
    next: str = ""


class Column(NamedTuple):
    """A column of a table."""

    name: str
    has_numbers: bool


class Listing(NamedTuple):
    """A list of any length.

    `fetch` reads the part that begins at a cursor; the first cursor is ''.
    """

    path: str
    """The path of its page; its CSV has the same path with a suffix."""
    columns: tuple[str, ...]
    fetch: Callable[[str], Part]
    usual_values: Mapping[str, Cell] = {}
    """By column: a page hides the column if each of its rows has this value."""

    def for_page(self, part: Part) -> tuple[list[Column], list[list[Cell]]]:
        """The visible columns and rows of a page."""
        indices = [
            index
            for index, name in enumerate(self.columns)
            if name not in self.usual_values
            or any(row[index] != self.usual_values[name] for row in part.rows)
        ]
        columns = [
            Column(self.columns[i], any(isinstance(row[i], int | float) for row in part.rows))
            for i in indices
        ]
        return columns, [[row[i] for i in indices] for row in part.rows]

    def csv(self) -> Iterator[str]:
        """The whole list, read in parts."""
        yield csv_line(self.columns)
        cursor = ""
        while True:
            part = self.fetch(cursor)
            yield "".join(map(csv_line, part.rows))
            if not part.next:
                return
            cursor = part.next


def csv_line(row: Row) -> str:
    """A line of RFC 4180."""
    line = io.StringIO()
    csv.writer(line).writerow([_to_csv_value(cell) for cell in row])
    return line.getvalue()


def _to_csv_value(cell: Cell) -> str | int | float:
    """Prefixes a text that a spreadsheet would take for a formula with an apostrophe."""
    match cell:
        case None:
            return ""
        case Link(text, _, whole):
            return _to_csv_value(whole or text)
        case Mark(text):
            return text
        case str():
            safe = visible_lines(cell)
            return f"'{safe}" if cell.startswith(_FORMULA) or safe.startswith(_FORMULA) else safe
    return cell
