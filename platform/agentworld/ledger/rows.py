"""Inserts and updates as plain SQL: a construct of SQLAlchemy costs 100 us for each statement.

A driver releases the interpreter's lock once for each inserted row, and beside a busy event loop
each release costs up to a switch interval. One statement for all rows releases it once.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

from sqlalchemy import Connection, FromClause, Insert, Table, Update

from agentworld.errors import StoreError
from agentworld.records.base import Digest

_MOST_ROWS = 256  # SQLite takes 32,766 values in one statement

Row = tuple[object, ...]
"""Values in the order of the table's columns, without an automatic key."""


def insert_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Inserts rows in their order; raises StoreError if the database drops one."""
    for part in _parts(rows):
        statement = _insert(table, len(part), _placeholder(connection))
        result = connection.exec_driver_sql(statement, tuple(chain.from_iterable(part)))
        if result.rowcount != len(part):
            raise dropped_rows_error(table, result.rowcount, len(part))


def change_rows(connection: Connection, statement: Insert | Update, num_rows: int = 1) -> None:
    """Inserts or updates `num_rows` rows; raises StoreError if the database drops one."""
    # The row count of a statement that returns keys is gone once they are read.
    result = connection.execute(statement, execution_options={"preserve_rowcount": True})
    if result.rowcount != num_rows:
        raise dropped_rows_error(statement.table, result.rowcount, num_rows)


def hold(connection: Connection, table: Table) -> None:
    """Locks the table for other writers until the transaction ends; readers do not wait."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")


def dropped_rows_error(table: FromClause, num_stored: int, num_rows: int) -> StoreError:
    """The error for a trigger or rule of the database that dropped rows silently."""
    return StoreError(
        f"the ledger's table {table} stored {num_stored} of {num_rows} rows, so nothing was"
        " written; remove the trigger or the rule that drops rows",
        retryable=False,
    )


class RunGrowth(NamedTuple):
    """The increments of a run's counters."""

    entries: int = 0
    episodes: int = 0
    steps: int = 0
    """Answered steps."""


def lengthen_run(connection: Connection, run: str, growth: RunGrowth) -> tuple[int, Digest] | None:
    """Increments an open run's counters; returns its log's length and its simulator."""
    statement = _LENGTHEN.format(_placeholder(connection))
    row = connection.exec_driver_sql(statement, (*growth, run)).first()
    return None if row is None else (row.log_length, row.simulator)


def open_episodes(connection: Connection, run: str, episodes: Collection[str]) -> dict[str, int]:
    """The keys of the open episodes of the run among `episodes`, by their ids."""
    # A repeated id is returned once; sizes are powers of two as below.
    ids = tuple(episodes)
    ids += ids[-1:] * ((1 << (len(ids) - 1).bit_length()) - len(ids))
    rows = connection.exec_driver_sql(_find(len(ids), _placeholder(connection)), ids)
    return {id_: key for id_, key, owner, closed in rows if owner == run and closed is None}


def _parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Chunks whose sizes are powers of two, so that few different statements are prepared."""
    start = 0
    while start < len(rows):
        size = min(_MOST_ROWS, 1 << ((len(rows) - start).bit_length() - 1))
        yield rows[start : start + size]
        start += size


def _placeholder(connection: Connection) -> str:
    return "?" if connection.dialect.name == "sqlite" else "%s"


_LENGTHEN = (
    "UPDATE runs SET log_length = log_length + {0}, num_episodes = num_episodes + {0},"
    " num_steps = num_steps + {0} WHERE id = {0} AND final_weights IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM attestations WHERE run = runs.id AND kind = 'restore')"
    " RETURNING log_length, simulator"
)


@cache
def _insert(table: Table, num_rows: int, placeholder: str) -> str:
    columns = [column.name for column in table.columns if column is not table.autoincrement_column]
    row = f"({', '.join([placeholder] * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * num_rows)}"


@cache
def _find(num_episodes: int, placeholder: str) -> str:
    # With the run in the condition, SQLite would read all of its open episodes.
    ids = ", ".join([placeholder] * num_episodes)
    return f"SELECT id, key, run, closed FROM episodes WHERE id IN ({ids})"
