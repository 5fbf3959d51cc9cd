"""A single change by an attacker, and the places that a finding must name."""

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
"""The identifier of an attestation in findings: its run, its alias, or the unsigned state."""


class Draw(NamedTuple):
    """The source of a random mutation: a world and a random generator."""

    world: World
    hand: Hand
    chance: random.Random

    def row(self, rows: str, *values: object) -> Row:
        """A random row of a statement's results, which are never empty."""
        return self.chance.choice(self.hand.rows(f"{rows} ORDER BY 1", *values))

    def new_name(self) -> str:
        """The name of a run or an episode that does not exist."""
        return self.chance.randbytes(16).hex()

    def digest(self) -> str:
        """A digest of nothing."""
        return f"sha256:{self.chance.randbytes(32).hex()}"


class Mutation(NamedTuple):
    """One change, or several that belong together."""

    places: frozenset[str]
    """Runs, episodes, agents, objects and keys: a finding that names one of them locates it."""
    do: Callable[[World], object]
    detail: str = ""
    """A description for people."""


Drawn = Callable[[Draw], Mutation | None]
"""Draws a mutation of one kind; null if it would change nothing."""


def executed(places: str | Iterable[str], *statements: Statement, detail: str = "") -> Mutation:
    """Runs these statements on a world's ledger."""

    def do(world: World) -> None:
        with world.database.hand() as hand:
            for statement in statements:
                hand.run(*statement)

    names = frozenset([places] if isinstance(places, str) else places)
    return Mutation(names, do, detail or ", ".join(sorted(names)))


@cache
def stranger() -> Signer:
    """The attacker's own key, which is not trusted."""
    with TemporaryDirectory() as folder:
        return ensure_signer(Path(folder) / "keys")


def sql(statement: str, *values: object) -> Statement:
    return statement, values


def key_of(table: str) -> list[str]:
    """The columns that identify a row."""
    return METADATA.tables[table].primary_key.columns.keys()


def found(table: str, row: _Known) -> Statement:
    """A condition that matches only this row, with its values."""
    key = key_of(table)
    return " AND ".join(f"{table}.{name} = ?" for name in key), tuple(row[name] for name in key)


def changed(table: str, row: _Known, **values: object) -> Statement:
    """An update of a row with these values."""
    condition, key_values = found(table, row)
    names = ", ".join(f"{name} = ?" for name in values)
    return f"UPDATE {table} SET {names} WHERE {condition}", (*values.values(), *key_values)


def removed(table: str, row: _Known) -> Statement:
    """A deletion of a row."""
    condition, key_values = found(table, row)
    return f"DELETE FROM {table} WHERE {condition}", key_values


def inserted(table: str, row: _Known, **values: object) -> Statement:
    """An insertion of a copy of this row with these values; an automatic key is the next one."""
    columns = METADATA.tables[table].columns.keys()
    new_values = {name: row[name] for name in columns if name in row} | values
    marks = dict.fromkeys(new_values, "?")
    number = METADATA.tables[table].autoincrement_column
    if number is not None:
        new_values.pop(number.name, None)
        marks[number.name] = f"(SELECT 1 + max({number.name}) FROM {table})"
    names = ", ".join(marks)
    return f"INSERT INTO {table} ({names}) VALUES ({', '.join(marks.values())})", (
        *new_values.values(),
    )


def exchanged(table: str, key: str, row: _Known, other: _Known) -> list[Statement]:
    """A swap of two rows' keys, without a duplicate in between."""
    moves = [(-1, row[key]), (row[key], other[key]), (other[key], -1)]
    return [sql(f"UPDATE {table} SET {key} = ? WHERE {key} = ?", *move) for move in moves]
