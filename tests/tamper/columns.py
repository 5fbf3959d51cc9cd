"""Every column that is evidence, by every value of its type that an attacker may think of."""

import random
import sqlite3
import struct
from collections.abc import Callable
from functools import partial

from sqlalchemy import Column

from agentworld.ledger.tables import METADATA
from tamper.mutation import ABOUT, Case, Mutation, Row, digest, drawn, executed

OWNER = {
    "runs": "SELECT id FROM runs WHERE rowid = ?",
    "log": "SELECT run FROM log WHERE rowid = ?",
    "checkpoints": "SELECT run FROM checkpoints WHERE rowid = ?",
    "episodes": "SELECT run, id FROM episodes WHERE rowid = ?",
    "steps": (
        "SELECT e.run, e.id FROM steps JOIN episodes AS e ON e.key = episode WHERE steps.rowid = ?"
    ),
    "attestations": f"SELECT {ABOUT} FROM attestations WHERE rowid = ?",
    "aliases": "SELECT alias FROM aliases WHERE rowid = ?",
    "signing_keys": "SELECT key FROM signing_keys WHERE rowid = ?",
}
"""What a row is of, by table: a problem that names one of these has found it."""


def evidence() -> list[Column[object]]:
    """Those columns of the schema that are not marked as none."""
    return [
        column
        for table in METADATA.sorted_tables
        for column in table.columns
        if column.info.get("evidence", True)
    ]


def cases() -> list[Case]:
    """One for each column."""
    return [Case(f"{column.table}.{column.name}", partial(_drawn, column)) for column in evidence()]


def owners(database: sqlite3.Connection, table: str, rowid: int) -> frozenset[str]:
    """The names of what a row is of."""
    return frozenset(database.execute(OWNER[table], (rowid,)).fetchone())


def _drawn(
    column: Column[object], database: sqlite3.Connection, chance: random.Random
) -> Mutation | None:
    table, name = str(column.table), column.name
    row = drawn(database, chance, f"SELECT rowid AS row, {name} AS value FROM {table}")
    how = chance.choice(_ways(column, row))
    if how is _swapped:
        return _swapped(column, row, database, chance)
    value = how(column, row, database, chance)
    if value == row["value"]:
        return None
    change = f"UPDATE {table} SET {name} = ? WHERE rowid = ?"
    return Mutation(
        kind=f"{table}.{name}",
        told=f"{how.__name__[1:]}: {row['value']!r:.60} became {value!r:.60}",
        places=owners(database, table, row["row"]) | _names(column, value),
        do=executed((change, (value, row["row"]))),
    )


def _names(column: Column[object], value: object) -> frozenset[str]:
    """What the row is now found by: a key's name, or the run of a checkpoint that has a copy."""
    names = {("signing_keys", "key"), ("checkpoints", "run")}
    named = (str(column.table), column.name) in names
    return frozenset({str(value)} if named else ())


_Way = Callable[[Column[object], Row, sqlite3.Connection, random.Random], object]


def _ways(column: Column[object], row: Row) -> list[_Way]:
    ways: list[_Way] = [_others]
    if column.nullable and row["value"] is not None:
        ways.append(_nothing)
    if row["value"] is None:
        return [*ways, _made_up]
    ways.append(_flipped)
    if isinstance(row["value"], int | float) and column.type.python_type is not bool:
        ways.append(_one_more)
    if isinstance(row["value"], str) and row["value"].startswith("sha256:"):
        ways.append(_another_digest)
    if not column.unique:
        ways.append(_swapped)
    return ways


def _nothing(*_drawn: object) -> None:
    return None


def _made_up(
    column: Column[object], _row: Row, _database: sqlite3.Connection, chance: random.Random
) -> object:
    made: dict[type, object] = {
        str: digest(chance),
        int: chance.randrange(1, 100),
        bytes: chance.randbytes(chance.randrange(40)),
        float: chance.random(),
    }
    return made[column.type.python_type]


def _others(
    column: Column[object], _row: Row, database: sqlite3.Connection, chance: random.Random
) -> object:
    row = drawn(
        database, chance, f"SELECT rowid AS row, {column.name} AS value FROM {column.table}"
    )
    return row["value"]


def _one_more(
    _column: Column[object], row: Row, _database: sqlite3.Connection, _chance: random.Random
) -> object:
    return row["value"] + 1


def _another_digest(
    _column: Column[object], _row: Row, _database: sqlite3.Connection, chance: random.Random
) -> str:
    return digest(chance)


def _flipped(
    column: Column[object], row: Row, _database: sqlite3.Connection, chance: random.Random
) -> object:
    """One bit, so that the value is still of its type."""
    value = row["value"]
    if column.type.python_type is bool:
        return int(not value)
    match value:
        case str() if value:
            place = chance.randrange(len(value))
            other = chr(ord(value[place]) ^ 1 << chance.randrange(4))
            return f"{value[:place]}{other}{value[place + 1 :]}"
        case bytes() if value:
            place = chance.randrange(len(value))
            other = value[place] ^ 1 << chance.randrange(8)
            return b"%b%c%b" % (value[:place], other, value[place + 1 :])
        case int():
            return value ^ 1 << chance.randrange(20)
        case float():
            (bits,) = struct.unpack("<Q", struct.pack("<d", value))
            return struct.unpack("<d", struct.pack("<Q", bits ^ 1 << chance.randrange(52)))[0]
    return value


def _swapped(
    column: Column[object], row: Row, database: sqlite3.Connection, chance: random.Random
) -> Mutation | None:
    """The values of two rows change places; a part of a key cannot, for both had it meanwhile."""
    table, name = column.table, column.name
    other = drawn(database, chance, f"SELECT rowid AS row, {name} AS value FROM {table}")
    if column.primary_key or other["value"] == row["value"]:
        return None
    change = f"UPDATE {table} SET {name} = ? WHERE rowid = ?"
    both = owners(database, str(table), row["row"]), owners(database, str(table), other["row"])
    return Mutation(
        kind=f"{table}.{name}",
        told=f"swapped: {row['value']!r:.60} and {other['value']!r:.60}",
        places=both[0] | both[1],
        do=executed((change, (other["value"], row["row"])), (change, (row["value"], other["row"]))),
    )
