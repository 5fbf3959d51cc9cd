"""What an attacker does to a world, once, and where it must then be found."""

import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agentworld.ledger.tables import METADATA
from tamper.databases import Hand, Row, Statement
from tamper.world import World

_Known = Mapping[str, Any]
"""A row, at least its key."""

ABOUT = (
    "CASE WHEN kind = 'deployment' THEN name WHEN run <> '' THEN run"
    " WHEN kind = 'adoption' THEN 'held unsigned' ELSE subject END"
)
"""What an attestation is told by: its use, its run, its alias, or what was there before."""


class Mutation(NamedTuple):
    """One change, or several that belong together."""

    kind: str
    told: str
    """For people."""
    places: frozenset[str]
    """Runs, episodes, agents, objects and keys: a problem that names one of them names it."""
    do: Callable[[World], object]


class Case(NamedTuple):
    """Draws a mutation of one kind; null where what it drew would change nothing."""

    kind: str
    draw: Callable[[Hand, random.Random], Mutation | None]


def executed(*statements: Statement) -> Callable[[World], None]:
    """Runs these statements on a world's ledger."""

    def do(world: World) -> None:
        with world.database.hand() as hand:
            for statement in statements:
                hand.run(*statement)

    return do


def drawn(hand: Hand, chance: random.Random, rows: str, *values: object) -> Row:
    """One of the rows that a statement finds; there are some in every world."""
    return chance.choice(hand.rows(f"{rows} ORDER BY 1", *values))


def key_of(table: str) -> list[str]:
    """The columns by which a row is found again."""
    return METADATA.tables[table].primary_key.columns.keys()


def found(table: str, row: _Known) -> Statement:
    """A condition that only this row meets, with its values."""
    key = key_of(table)
    return " AND ".join(f"{table}.{name} = ?" for name in key), tuple(row[name] for name in key)


def changed(table: str, row: _Known, **values: object) -> Statement:
    """Writes these values into a row."""
    condition, own = found(table, row)
    names = ", ".join(f"{name} = ?" for name in values)
    return f"UPDATE {table} SET {names} WHERE {condition}", (*values.values(), *own)


def removed(table: str, row: _Known) -> Statement:
    """Takes a row away."""
    condition, own = found(table, row)
    return f"DELETE FROM {table} WHERE {condition}", own


def inserted(table: str, row: _Known) -> Statement:
    """Adds a row; a number of its own is the next one."""
    number = METADATA.tables[table].autoincrement_column
    own = dict.fromkeys(row, "?")
    if number is not None and number.name not in row:
        own[number.name] = f"(SELECT 1 + max({number.name}) FROM {table})"
    names, values = ", ".join(own), ", ".join(own.values())
    return f"INSERT INTO {table} ({names}) VALUES ({values})", tuple(row.values())


def copied(table: str, row: _Known, **values: object) -> Statement:
    """Adds a row like another one but for these values; a number of its own is the next one."""
    columns = METADATA.tables[table].columns.keys()
    own = {name: "?" if name in values else name for name in columns}
    numbered = METADATA.tables[table].autoincrement_column
    if numbered is not None and numbered.name not in values:
        own[numbered.name] = f"(SELECT 1 + max({numbered.name}) FROM {table})"
    condition, key = found(table, row)
    select = f"SELECT {', '.join(own.values())} FROM {table} WHERE {condition}"
    told = tuple(values[name] for name in columns if name in values)
    return f"INSERT INTO {table} ({', '.join(columns)}) {select}", (*told, *key)


def digest(chance: random.Random) -> str:
    """One that names nothing."""
    return f"sha256:{chance.randbytes(32).hex()}"
