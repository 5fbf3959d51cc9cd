"""The object store in an attacker's hands: texts and reports, each in a file of its digest."""

import random
from pathlib import Path

from tamper.databases import Hand
from tamper.mutation import Case, Mutation, drawn
from tamper.world import World

_LONG = """
    SELECT e.run, e.id, text FROM episodes AS e JOIN (
        SELECT episode, action_digest AS text FROM steps WHERE action IS NULL
        UNION SELECT episode, observation_digest FROM steps WHERE observation IS NULL
        UNION SELECT key, opening_digest FROM episodes WHERE opening IS NULL
    ) AS long ON episode = e.key WHERE NOT e.erased
    UNION SELECT alias, alias, report FROM aliases WHERE report IS NOT NULL
"""


def cases() -> list[Case]:
    """What becomes of a long text or of a report."""
    return [
        Case("object changed", _changed),
        Case("object cut", _cut),
        Case("object exchanged", _exchanged),
        Case("object removed", _removed),
    ]


def _changed(hand: Hand, chance: random.Random) -> Mutation:
    def do(world: World, place: float = chance.random(), bit: int = chance.randrange(8)) -> None:
        data = bytearray((world.folder / file).read_bytes())
        data[int(place * len(data))] ^= 1 << bit
        _exchange(world.folder / file, data)

    file, places = _long_text(hand, chance)
    return Mutation("object changed", file, places, do)


def _cut(hand: Hand, chance: random.Random) -> Mutation:
    def do(world: World, share: float = chance.random()) -> None:
        data = (world.folder / file).read_bytes()
        _exchange(world.folder / file, data[: int(share * len(data))])

    file, places = _long_text(hand, chance)
    return Mutation("object cut", file, places, do)


def _exchanged(hand: Hand, chance: random.Random) -> Mutation | None:
    def do(world: World) -> None:
        _exchange(world.folder / file, (world.folder / other).read_bytes())

    file, places = _long_text(hand, chance)
    other, _ = _long_text(hand, chance)
    return None if file == other else Mutation("object exchanged", file, places, do)


def _removed(hand: Hand, chance: random.Random) -> Mutation:
    file, places = _long_text(hand, chance)
    return Mutation("object removed", file, places, lambda world: (world.folder / file).unlink())


def _long_text(hand: Hand, chance: random.Random) -> tuple[str, frozenset[str]]:
    """Its file, and its digest: a problem must name that."""
    row = drawn(hand, chance, _LONG)
    name = row["text"].removeprefix("sha256:")
    return f"objects/{name[:2]}/{name}", frozenset({row["text"]})


def _exchange(file: Path, data: bytes) -> None:
    """The file may have another name in the untouched world."""
    file.unlink()
    file.write_bytes(data)
