"""What an attacker does to a world, once, and where it must then be found."""

import random
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from agentworld.ledger.tables import METADATA
from agentworld.signing.keys import Signer, ensure_signer
from campaigns.tamper.databases import Hand, Row, Statement
from campaigns.tamper.world import World

_Known = Mapping[str, Any]
"""A row, at least its key."""

ABOUT = "CASE WHEN run <> '' THEN run WHEN kind = 'genesis' THEN 'held unsigned' ELSE subject END"
"""What an attestation is told by: its run, its alias, or what was there before."""


class Draw(NamedTuple):
    """What a mutation is drawn from: a world as it is, and chance."""

    world: World
    hand: Hand
    chance: random.Random

    def row(self, rows: str, *values: object) -> Row:
        """One of the rows that a statement finds; there are some in every world."""
        return self.chance.choice(self.hand.rows(f"{rows} ORDER BY 1", *values))

    def new_name(self) -> str:
        """A run or an episode that is not there."""
        return self.chance.randbytes(16).hex()

    def digest(self) -> str:
        """One that names nothing."""
        return f"sha256:{self.chance.randbytes(32).hex()}"


class Mutation(NamedTuple):
    """One change, or several that belong together."""

    places: frozenset[str]
    """Runs, episodes, agents, objects and keys: a problem that names one of them names it."""
    do: Callable[[World], object]
    detail: str = ""
    """For people."""


Drawn = Callable[[Draw], Mutation | None]
"""Draws a mutation of one kind; null where what it drew would change nothing."""


def executed(places: str | Iterable[str], *statements: Statement, detail: str = "") -> Mutation:
    """Runs these statements on a world's ledger."""

    def do(world: World) -> None:
        with world.database.hand() as hand:
            for statement in statements:
                hand.run(*statement)

    named = frozenset([places] if isinstance(places, str) else places)
    return Mutation(named, do, detail or ", ".join(sorted(named)))


@cache
def stranger() -> Signer:
    """The attacker's own key, which nobody trusts."""
    with TemporaryDirectory() as folder:
        return ensure_signer(Path(folder) / "keys")


def sql(statement: str, *values: object) -> Statement:
    return statement, values


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


def inserted(table: str, row: _Known, **values: object) -> Statement:
    """Adds a row like this one but for these values; a number of its own is the next one."""
    columns = METADATA.tables[table].columns.keys()
    own = {name: row[name] for name in columns if name in row} | values
    marks = dict.fromkeys(own, "?")
    number = METADATA.tables[table].autoincrement_column
    if number is not None:
        own.pop(number.name, None)
        marks[number.name] = f"(SELECT 1 + max({number.name}) FROM {table})"
    names = ", ".join(marks)
    return f"INSERT INTO {table} ({names}) VALUES ({', '.join(marks.values())})", (*own.values(),)


def exchanged(table: str, key: str, row: _Known, other: _Known) -> list[Statement]:
    """Two rows change places by their numbers; a number is never there twice."""
    moves = [(-1, row[key]), (row[key], other[key]), (other[key], -1)]
    return [sql(f"UPDATE {table} SET {key} = ? WHERE {key} = ?", *move) for move in moves]
