"""Garbage in the rows of a database file: any value in any column, one or several.

SQLite accepts values of any type in any column.
"""

import random
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from campaigns.garbage import values

_MOST_TRIES = 50
"""For changes that the schema refuses, and rows that are spared."""


class Garbage(NamedTuple):
    """A value, and its SQL."""

    mark: str
    value: object

    @classmethod
    def drawn(cls, chance: random.Random) -> "Garbage":
        kinds = values.text, values.text, values.number, values.no_text, lambda _: None
        value = chance.choice(kinds)(chance)
        is_text = isinstance(value, bytes) and chance.random() < 0.5
        return cls("CAST(? AS TEXT)" if is_text else "?", value)


class Rows:
    """A database file, in which one row at a time is garbled."""

    def __init__(self, file: Path, tables: Iterable[str], spared: Iterable[str]) -> None:
        self._file = file
        self._kept = file.with_name(f"untouched-{file.name}")
        self._spared = tuple(spared)
        with closing(sqlite3.connect(file)) as database:
            database.execute("VACUUM INTO ?", (str(self._kept),))
            self.columns = [
                (table, str(name))
                for table in tables
                for _, name, *_ in database.execute(f"PRAGMA table_info({table})")
                if database.execute(f"SELECT count(*) FROM {table}").fetchone() != (0,)
            ]

    def garble(self, column: tuple[str, str], chance: random.Random) -> str:
        """Changes a row, or adds a similar one; returns a description."""
        for _ in range(_MOST_TRIES):
            with (
                suppress(sqlite3.IntegrityError, sqlite3.DataError, OverflowError),
                closing(sqlite3.connect(self._file)) as database,
                database,
            ):
                if description := self._garble(database, *column, chance):
                    return description
        return f"{'.'.join(column)}: the schema takes nothing else"

    def undo(self) -> None:
        """Restores the rows in the same file, so that open connections stay valid."""
        with (
            closing(sqlite3.connect(self._kept)) as original,
            closing(sqlite3.connect(self._file)) as database,
        ):
            database.execute("PRAGMA synchronous=OFF")
            original.backup(database)

    def _garble(
        self, database: sqlite3.Connection, table: str, column: str, chance: random.Random
    ) -> str:
        database.execute("PRAGMA synchronous=OFF")
        rows = database.execute(f"SELECT rowid, * FROM {table} ORDER BY rowid").fetchall()
        number, *row = chance.choice(rows)
        description = " ".join(map(str, row))
        if any(item in description for item in self._spared):
            return ""
        names = [name for owner, name in self.columns if owner == table]
        other_names = chance.sample(names, min(len(names), chance.choice((0, 0, 0, 1, 2))))
        garbage = {item: Garbage.drawn(chance) for item in (column, *other_names)}
        if chance.random() < 0.15:
            _add(database, table, dict(zip(names, row, strict=True)), garbage)
        else:
            marks = ", ".join(
                f"{name} = {garbage_value.mark}" for name, garbage_value in garbage.items()
            )
            parameters = (*(value.value for value in garbage.values()), number)
            database.execute(f"UPDATE {table} SET {marks} WHERE rowid = ?", parameters)
        return ", ".join(
            f"{table}.{name} = {garbage_value.value!r:.60}"
            for name, garbage_value in garbage.items()
        )


def _add(
    database: sqlite3.Connection, table: str, row: dict[str, object], garbage: dict[str, Garbage]
) -> None:
    new_row = {name: Garbage("?", value) for name, value in row.items()} | garbage
    marks = ", ".join(value.mark for value in new_row.values())
    parameters = tuple(value.value for value in new_row.values())
    database.execute(f"INSERT INTO {table} ({', '.join(new_row)}) VALUES ({marks})", parameters)
