"""The object store in an attacker's hands: long texts, each in a file of its digest."""

import random
import sqlite3
from pathlib import Path

from tamper.mutation import Case, Mutation, drawn

_LONG = """
    SELECT e.run, e.id, text FROM episodes AS e JOIN (
        SELECT episode, action_digest AS text FROM steps WHERE action IS NULL
        UNION SELECT episode, observation_digest FROM steps WHERE observation IS NULL
        UNION SELECT key, opening_digest FROM episodes WHERE opening IS NULL
    ) ON episode = e.key WHERE NOT e.erased
"""


def cases() -> list[Case]:
    """What becomes of a long text."""
    return [
        Case("object changed", _changed),
        Case("object cut", _cut),
        Case("object exchanged", _exchanged),
        Case("object removed", _removed),
    ]


def _changed(database: sqlite3.Connection, chance: random.Random) -> Mutation:
    def do(folder: Path, place: float = chance.random(), bit: int = chance.randrange(8)) -> None:
        data = bytearray((folder / file).read_bytes())
        data[int(place * len(data))] ^= 1 << bit
        _exchange(folder / file, data)

    file, places = _long_text(database, chance)
    return Mutation("object changed", file, places, do)


def _cut(database: sqlite3.Connection, chance: random.Random) -> Mutation:
    def do(folder: Path, share: float = chance.random()) -> None:
        data = (folder / file).read_bytes()
        _exchange(folder / file, data[: int(share * len(data))])

    file, places = _long_text(database, chance)
    return Mutation("object cut", file, places, do)


def _exchanged(database: sqlite3.Connection, chance: random.Random) -> Mutation | None:
    def do(folder: Path) -> None:
        _exchange(folder / file, (folder / other).read_bytes())

    file, places = _long_text(database, chance)
    other, _ = _long_text(database, chance)
    return None if file == other else Mutation("object exchanged", file, places, do)


def _removed(database: sqlite3.Connection, chance: random.Random) -> Mutation:
    file, places = _long_text(database, chance)
    return Mutation("object removed", file, places, lambda folder: (folder / file).unlink())


def _long_text(database: sqlite3.Connection, chance: random.Random) -> tuple[str, frozenset[str]]:
    """Its file, and its digest: a problem must name that."""
    row = drawn(database, chance, _LONG)
    name = row["text"].removeprefix("sha256:")
    return f"objects/{name[:2]}/{name}", frozenset({row["text"]})


def _exchange(file: Path, data: bytes) -> None:
    """The file may have another name in the untouched world."""
    file.unlink()
    file.write_bytes(data)
