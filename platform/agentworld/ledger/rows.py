"""Many rows in one statement, as plain SQL.

A driver lets go of the interpreter's lock once for each row that it inserts, and beside a busy
event loop each time costs up to a switch interval. One statement for all rows lets go once.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import chain

from sqlalchemy import Connection, Table

_MOST_ROWS = 256  # SQLite takes 32,766 values in one statement

Row = tuple[object, ...]
"""Values in the order of the table's columns."""


def insert_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Adds rows in their order."""
    for part in _parts(rows):
        names = tuple(table.columns.keys())
        statement = _insert(table.name, names, len(part), _placeholder(connection))
        connection.exec_driver_sql(statement, tuple(chain.from_iterable(part)))


def count_open_episodes(connection: Connection, run: str, episodes: Collection[str]) -> int:
    """How many of these are episodes of the run and not closed."""
    # Asked for twice, one is counted once; sizes are powers of two as below.
    named = tuple(episodes)
    named += named[-1:] * ((1 << (len(named) - 1).bit_length()) - len(named))
    statement = _count(len(named), _placeholder(connection))
    (found,) = connection.exec_driver_sql(statement, (run, *named)).one()
    return int(found)


def _parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Parts whose sizes are powers of two, so that few different statements are prepared."""
    place = 0
    while place < len(rows):
        size = min(_MOST_ROWS, 1 << ((len(rows) - place).bit_length() - 1))
        yield rows[place : place + size]
        place += size


def _placeholder(connection: Connection) -> str:
    return "?" if connection.dialect.name == "sqlite" else "%s"


@cache
def _insert(table: str, columns: tuple[str, ...], num_rows: int, placeholder: str) -> str:
    row = f"({', '.join([placeholder] * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * num_rows)}"


@cache
def _count(num_episodes: int, placeholder: str) -> str:
    names = ", ".join([placeholder] * num_episodes)
    return (
        f"SELECT count(*) FROM episodes WHERE run = {placeholder} AND closed IS NULL"
        f" AND id IN ({names})"
    )
