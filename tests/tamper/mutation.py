"""What an attacker does to a world, once, and where it must then be found."""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

Row = sqlite3.Row

ABOUT = "CASE WHEN run <> '' THEN run WHEN kind = 'adoption' THEN 'held unsigned' ELSE subject END"
"""What an attestation is told by: its run, its alias, or that it is the one of what was before."""


class Mutation(NamedTuple):
    """One change, or several that belong together."""

    kind: str
    told: str
    """For people."""
    places: frozenset[str]
    """Runs, episodes, agents, objects and keys: a problem that names one of them names it."""
    do: Callable[[Path], object]
    """To the folder of a world."""


class Case(NamedTuple):
    """Draws a mutation of one kind; null where what it drew would change nothing."""

    kind: str
    draw: Callable[[sqlite3.Connection, random.Random], Mutation | None]


@contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    """The ledger as its owner has it: no foreign key is checked."""
    with closing(sqlite3.connect(file)) as database, database:
        database.row_factory = sqlite3.Row
        yield database


def executed(*statements: tuple[str, tuple[object, ...]]) -> Callable[[Path], None]:
    """Runs these statements on the ledger of a folder."""

    def do(folder: Path) -> None:
        with opened(folder / "ledger.db") as database:
            for statement, values in statements:
                database.execute(statement, values)

    return do


def drawn(database: sqlite3.Connection, chance: random.Random, rows: str) -> Row:
    """One of the rows that a statement finds; there are some in every world."""
    return chance.choice(database.execute(f"{rows} ORDER BY 1").fetchall())


def digest(chance: random.Random) -> str:
    """One that names nothing."""
    return f"sha256:{chance.randbytes(32).hex()}"
