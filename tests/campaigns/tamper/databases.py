"""A ledger's database with an attacker's access, and copies of its earlier state: SQLite's and
PostgreSQL's.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, Engine, RowMapping, create_engine, event

from agentworld.ledger.tables import METADATA

Row = RowMapping
Statement = tuple[str, tuple[object, ...]]
"""SQL that both databases know, with a `?` for each value."""

# An attacker's writes need not be durable.
_IN_NO_HURRY = "PRAGMA synchronous=OFF"

_TABLES = [table.name for table in METADATA.sorted_tables]


class Hand(NamedTuple):
    """A connection with the rights of the ledger's owner: no foreign key is checked."""

    connection: Connection

    @property
    def is_sqlite(self) -> bool:
        return self.connection.dialect.name == "sqlite"

    def rows(self, statement: str, *values: object) -> list[Row]:
        return [*self.connection.exec_driver_sql(self._own(statement), values).mappings()]

    def run(self, statement: str, values: tuple[object, ...]) -> int:
        """Runs a statement; returns the number of rows."""
        return self.connection.exec_driver_sql(self._own(statement), values).rowcount

    def _own(self, statement: str) -> str:
        return statement if self.is_sqlite else statement.replace("?", "%s")


class Database(NamedTuple):
    """A database by its address; old copies are stored beside it, where the attacker can read them,
    too.
    """

    url: str

    @classmethod
    def file(cls, folder: Path) -> "Database":
        """SQLite's, in a folder."""
        return cls(f"sqlite:///{folder.resolve() / 'ledger.db'}")

    @property
    def is_sqlite(self) -> bool:
        return self.url.startswith("sqlite")

    @contextmanager
    def hand(self, copy_name: str = "") -> Iterator[Hand]:
        """Its changes are committed after the block; `copy_name` is an old copy to read."""
        with _engine(self._of(copy_name)).begin() as connection:
            if copy_name and not self.is_sqlite:
                connection.exec_driver_sql(f"SET LOCAL search_path TO {copy_name}")
            yield Hand(connection)

    def keep(self, name: str) -> None:
        """Copies its present state."""
        if self.is_sqlite:
            with closing(sqlite3.connect(self._file)) as database:
                database.execute(f"VACUUM INTO '{self._file_of(name)}'")
            return
        with self.hand() as hand:
            hand.run(f"CREATE SCHEMA {name}", ())
            for table in _TABLES:
                hand.run(f"CREATE TABLE {name}.{table} AS TABLE public.{table}", ())

    def put_back(self, name: str) -> None:
        """Restores a copy; open connections stay valid."""
        if self.is_sqlite:
            with (
                closing(sqlite3.connect(self._file_of(name))) as original,
                closing(sqlite3.connect(self._file)) as database,
            ):
                database.execute(_IN_NO_HURRY)
                original.backup(database)
            return
        with self.hand() as hand:
            for table in METADATA.sorted_tables:
                _exchange(hand, table.name, name, table.primary_key.columns.keys())

    def let_go(self) -> None:
        """Closes all connections."""
        _engine(self.url).dispose()

    def _of(self, copy_name: str) -> str:
        return f"sqlite:///{self._file_of(copy_name)}" if copy_name and self.is_sqlite else self.url

    @property
    def _file(self) -> Path:
        return Path(self.url.removeprefix("sqlite:///"))

    def _file_of(self, copy_name: str) -> Path:
        return self._file.with_name(f"kept-{copy_name}.db")


@cache
def _engine(url: str) -> Engine:
    if url.startswith("sqlite"):
        engine = create_engine(url)
        event.listen(engine, "connect", lambda raw, _: raw.execute(_IN_NO_HURRY))
        return engine
    # PostgreSQL lets the owner of a table disable the triggers of foreign keys.
    owner = "-c session_replication_role=replica -c synchronous_commit=off"
    return create_engine(url, connect_args={"options": owner})


def _exchange(hand: Hand, table: str, copy_name: str, key: list[str]) -> None:
    """Restores only the rows that differ: writing all of them takes ten times as long."""
    current, old = f"TABLE public.{table}", f"TABLE {copy_name}.{table}"
    where = " AND ".join(f"own.{name} = other.{name}" for name in key)
    hand.run(
        f"DELETE FROM public.{table} AS own USING ({current} EXCEPT {old}) AS other WHERE {where}",
        (),
    )
    hand.run(f"INSERT INTO public.{table} ({old} EXCEPT {current})", ())
