"""Every column that is evidence, by every value of its type that an attacker may think of."""

import random
import struct
from collections.abc import Callable
from functools import partial

from sqlalchemy import Column

from agentworld.ledger.tables import METADATA
from tamper.databases import Hand, Row
from tamper.mutation import ABOUT, Case, Mutation, changed, digest, drawn, executed, found, key_of

OWNER = {
    "runs": "SELECT id FROM runs",
    "log": "SELECT run FROM log",
    "checkpoints": "SELECT run FROM checkpoints",
    "episodes": "SELECT run, id FROM episodes",
    "steps": "SELECT e.run, e.id FROM steps JOIN episodes AS e ON e.key = steps.episode",
    "attestations": f"SELECT {ABOUT} AS about FROM attestations",
    "aliases": "SELECT alias FROM aliases",
    "signing_keys": "SELECT key FROM signing_keys",
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


def owners(hand: Hand, table: str, row: Row) -> frozenset[str]:
    """The names of what a row is of."""
    condition, own = found(table, row)
    return frozenset(hand.rows(f"{OWNER[table]} WHERE {condition}", *own)[0].values())


def _drawn(column: Column[object], hand: Hand, chance: random.Random) -> Mutation | None:
    table, name = str(column.table), column.name
    row = _value(column, hand, chance)
    how = chance.choice(_ways(column, row, hand))
    if how is _swapped:
        return _swapped(column, row, hand, chance)
    value = how(column, row, hand, chance)
    if value == row["value"]:
        return None
    return Mutation(
        kind=f"{table}.{name}",
        told=f"{how.__name__[1:]}: {row['value']!r:.60} became {value!r:.60}",
        places=owners(hand, table, row) | _names(column, value),
        do=executed(changed(table, row, **{name: value})),
    )


def _value(column: Column[object], hand: Hand, chance: random.Random) -> Row:
    """A row's value and its key; of what is signed each kind alike."""
    table = str(column.table)
    rows = f"SELECT {', '.join(key_of(table))}, {column.name} AS value FROM {table}"
    if table != "attestations":
        return drawn(hand, chance, rows)
    kinds = hand.rows("SELECT DISTINCT kind FROM attestations ORDER BY 1")
    return drawn(hand, chance, f"{rows} WHERE kind = ?", chance.choice(kinds)["kind"])


def _names(column: Column[object], value: object) -> frozenset[str]:
    """What the row is now found by: a key's name, or the run of a checkpoint that has a copy."""
    names = {("signing_keys", "key"), ("checkpoints", "run")}
    named = (str(column.table), column.name) in names
    unread = {"the signing keys cannot be read"} if str(column.table) == "signing_keys" else set()
    return frozenset(unread | ({str(value)} if named else set()))


_Way = Callable[[Column[object], Row, Hand, random.Random], object]


def _ways(column: Column[object], row: Row, hand: Hand) -> list[_Way]:
    ways: list[_Way] = [_others]
    if hand.is_sqlite and column.type.python_type is not bool:
        ways.append(_of_another_type)
    if column.nullable and row["value"] is not None:
        ways.append(_nothing)
    if row["value"] is None:
        return [*ways, _made_up]
    ways.append(_flipped)
    if isinstance(row["value"], int | float) and column.type.python_type is not bool:
        ways.append(_one_more)
    if isinstance(row["value"], float):
        ways.append(_no_number)
    if isinstance(row["value"], str) and row["value"].startswith("sha256:"):
        ways.append(_another_digest)
    if not column.unique:
        ways.append(_swapped)
    return ways


def _nothing(*_drawn: object) -> None:
    return None


def _made_up(column: Column[object], _row: Row, _hand: Hand, chance: random.Random) -> object:
    made: dict[type, object] = {
        str: digest(chance),
        int: chance.randrange(1, 100),
        bytes: chance.randbytes(chance.randrange(40)),
        float: chance.random(),
    }
    return made[column.type.python_type]


def _others(column: Column[object], _row: Row, hand: Hand, chance: random.Random) -> object:
    return _value(column, hand, chance)["value"]


def _one_more(_column: Column[object], row: Row, _hand: Hand, _chance: random.Random) -> object:
    return row["value"] + 1


def _no_number(*drawn: object) -> float:
    *_, chance = drawn
    assert isinstance(chance, random.Random)
    return chance.choice([float("inf"), float("-inf"), float("nan")])


def _of_another_type(
    column: Column[object], _row: Row, _hand: Hand, chance: random.Random
) -> object:
    """Which SQLite keeps all the same."""
    other = {bytes: digest(chance), str: b"\xff\xfe"}
    return other.get(column.type.python_type, "none")


def _another_digest(_column: Column[object], _row: Row, _hand: Hand, chance: random.Random) -> str:
    return digest(chance)


def _flipped(column: Column[object], row: Row, _hand: Hand, chance: random.Random) -> object:
    """One bit, so that the value is still of its type."""
    value = row["value"]
    if column.type.python_type is bool:
        return not value
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
    column: Column[object], row: Row, hand: Hand, chance: random.Random
) -> Mutation | None:
    """The values of two rows change places; a part of a key cannot, for both had it meanwhile."""
    table, name = str(column.table), column.name
    other = _value(column, hand, chance)
    if column.primary_key or other["value"] == row["value"]:
        return None
    return Mutation(
        kind=f"{table}.{name}",
        told=f"swapped: {row['value']!r:.60} and {other['value']!r:.60}",
        places=owners(hand, table, row) | owners(hand, table, other),
        do=executed(
            changed(table, row, **{name: other["value"]}),
            changed(table, other, **{name: row["value"]}),
        ),
    )
