"""A list as a table of a page and as CSV: one definition, a part at a time."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

from agentworld.reports.visible import visible_lines

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Link(NamedTuple):
    """A cell that leads to a page."""

    text: str
    href: str
    whole: str = ""
    """What CSV tells in place of a shortened text."""


class Mark(NamedTuple):
    """A cell that says in colour, too, how good it is."""

    text: str
    state: Literal["good", "wait", "bad"]


Cell = str | int | float | Link | Mark | None
Row = tuple[Cell, ...]


class Part(NamedTuple):
    """Some rows, and where the next ones begin; an empty cursor is the end."""

    rows: list[Row]
    next: str = ""


class Column(NamedTuple):
    """Of a table on a page."""

    name: str
    has_numbers: bool


class Listing(NamedTuple):
    """A list of any length. `fetch` reads the part that a cursor begins; the first one is ''."""

    path: str
    """Of its page; its CSV is there too."""
    columns: tuple[str, ...]
    fetch: Callable[[str], Part]
    usual_values: Mapping[str, Cell] = {}
    """By column: a page leaves a column out where each of its rows has this value."""

    def for_page(self, part: Part) -> tuple[list[Column], list[list[Cell]]]:
        """The columns and rows of a page, without columns that say the same in every row."""
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
        """All of it, a part at a time."""
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
    """A text that a spreadsheet would take for a formula begins with an apostrophe."""
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
