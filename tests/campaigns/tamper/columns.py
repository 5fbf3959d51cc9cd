"""Every evidence column, with values of its type that an attacker may choose."""

import random
import struct
from collections.abc import Callable
from functools import partial

from sqlalchemy import Column

from agentworld.ledger.tables import METADATA
from campaigns.tamper.databases import Hand, Row
from campaigns.tamper.mutation import ABOUT, Draw, Drawn, Mutation, changed, executed, found, key_of

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
"""The owner of a row, by table: a finding that names it has located the change."""

EVIDENCE: list[Column[object]] = [
    column
    for table in METADATA.sorted_tables
    for column in table.columns
    if column.info.get("evidence", True)
]
"""The columns of the schema that are not marked as no evidence."""


def owners(hand: Hand, table: str, row: Row) -> frozenset[str]:
    """The names of a row's owner."""
    condition, key_values = found(table, row)
    return frozenset(hand.rows(f"{OWNER[table]} WHERE {condition}", *key_values)[0].values())


def _mutation(column: Column[object], draw: Draw) -> Mutation | None:
    """Changes one value, or swaps the values of two rows."""
    table, name = str(column.table), column.name
    row = _drawn(column, draw)
    way = draw.chance.choice(_ways(column, row["value"], draw.hand))
    other_row = _drawn(column, draw)
    value = other_row["value"] if way in _OF_ANOTHER else way(column, row["value"], draw.chance)
    if value == row["value"] or (way is _swapped and column.primary_key):
        return None  # a swap would duplicate a key
    places, changes = owners(draw.hand, table, row), [changed(table, row, **{name: value})]
    if way is not _swapped:
        places |= _names(column, value)
    else:
        places |= owners(draw.hand, table, other_row)
        changes.append(changed(table, other_row, **{name: row["value"]}))
    detail = f"{way.__name__[1:]}: {row['value']!r:.60} became {value!r:.60}"
    return executed(places, *changes, detail=detail)


def _drawn(column: Column[object], draw: Draw) -> Row:
    """A row's value and its key; each kind of statement equally often."""
    table = str(column.table)
    rows = f"SELECT {', '.join(key_of(table))}, {column.name} AS value FROM {table}"
    if table != "attestations":
        return draw.row(rows)
    kind = draw.row("SELECT DISTINCT kind FROM attestations")["kind"]
    return draw.row(f"{rows} WHERE kind = ?", kind)


def _names(column: Column[object], value: object) -> set[str]:
    """The new identifier of the row: a key's name, or the run of a checkpoint that has a copy."""
    names = {str(value)} if str(column) in ("signing_keys.key", "checkpoints.run") else set()
    unreadable = (
        {"the signing keys cannot be read"} if str(column.table) == "signing_keys" else set()
    )
    return names | unreadable


_Way = Callable[[Column[object], object, random.Random], object]


def _ways(column: Column[object], value: object, hand: Hand) -> list[_Way]:
    is_bool = column.type.python_type is bool
    is_digest = isinstance(value, str) and value.startswith("sha256:")
    possible = {
        _others: True,
        _of_another_type: hand.is_sqlite and not is_bool,
        _nothing: column.nullable and value is not None,
        _made_up: value is None,
        _flipped: value is not None,
        _one_more: isinstance(value, int | float) and not is_bool,
        _no_number: isinstance(value, float),
        _another_digest: is_digest,
        _swapped: value is not None and not column.unique,
    }
    return [way for way, is_possible in possible.items() if is_possible]


def _others(*_: object) -> None:
    """Another row's value."""


def _swapped(*_: object) -> None:
    """Another row's value, swapped with this one."""


_OF_ANOTHER = (_others, _swapped)


def _nothing(*_: object) -> None:
    return None


def _made_up(column: Column[object], _value: object, chance: random.Random) -> object:
    functions: dict[type, object] = {
        str: _another_digest(column, None, chance),
        int: chance.randrange(1, 100),
        bytes: chance.randbytes(chance.randrange(40)),
        float: chance.random(),
    }
    return functions[column.type.python_type]


def _one_more(_column: Column[object], value: float, _chance: random.Random) -> object:
    return value + 1


def _no_number(_column: Column[object], _value: object, chance: random.Random) -> float:
    return chance.choice([float("inf"), float("-inf"), float("nan")])


def _of_another_type(column: Column[object], _value: object, chance: random.Random) -> object:
    """A value of another type, which SQLite stores nevertheless."""
    values = {bytes: _another_digest(column, None, chance), str: b"\xff\xfe"}
    return values.get(column.type.python_type, "none")


def _another_digest(_column: Column[object], _value: object, chance: random.Random) -> str:
    return f"sha256:{chance.randbytes(32).hex()}"


def _flipped(column: Column[object], value: object, chance: random.Random) -> object:
    """Flips one bit, so that the value keeps its type."""
    if column.type.python_type is bool:
        return not value
    match value:
        case str() if value:
            index = chance.randrange(len(value))
            flipped = chr(ord(value[index]) ^ 1 << chance.randrange(4))
            return f"{value[:index]}{flipped}{value[index + 1 :]}"
        case bytes() if value:
            index = chance.randrange(len(value))
            flipped = value[index] ^ 1 << chance.randrange(8)
            return b"%b%c%b" % (value[:index], flipped, value[index + 1 :])
        case int():
            return value ^ 1 << chance.randrange(20)
        case float():
            (bits,) = struct.unpack("<Q", struct.pack("<d", value))
            return struct.unpack("<d", struct.pack("<Q", bits ^ 1 << chance.randrange(52)))[0]
    return value


MUTATIONS: dict[str, Drawn] = {str(column): partial(_mutation, column) for column in EVIDENCE}
