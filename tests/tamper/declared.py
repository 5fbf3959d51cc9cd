"""What is declared in an attacker's hands: what he declares himself, and what was lost for good."""

import random

from agentworld.evidence.checkpoint import checkpoint_name
from agentworld.evidence.declared import attested
from agentworld.ledger.tables import METADATA
from agentworld.records.alias import AliasChange
from agentworld.records.declaration import AliasEntry, Declaration, Erasure, Restore
from tamper.databases import Hand, Row, Statement
from tamper.mutation import Case, Mutation, digest, drawn, executed, inserted
from tamper.stranger import stranger
from tamper.world import World

_AT = "2030-01-01T00:00:00.000+00:00"


def cases(world: World) -> list[Case]:
    """What is told that is true no more, or never was."""
    return [
        Case("move declared", _move),
        Case("erasure declared", _erasure),
        Case("restore declared", _restore),
        Case("lost statement told again", lambda hand, chance: _again(world, hand, chance)),
        Case("lost move told again", lambda hand, chance: _move_again(world, hand, chance)),
        Case("lost run told again", lambda hand, chance: _run_again(world, hand, chance)),
    ]


def _move(hand: Hand, chance: random.Random) -> Mutation:
    """And done."""
    row = drawn(hand, chance, "SELECT * FROM aliases")
    told = {"simulator": digest(chance), "set_by": "ada", "at": _AT}
    change = AliasChange(alias=row["alias"], **told)
    made = AliasEntry(change=change, previous=digest(chance))
    own = inserted("aliases", {"alias": row["alias"], "ended": False, **told})
    return _declared("move declared", made, row["alias"], own)


def _erasure(hand: Hand, chance: random.Random) -> Mutation:
    """And done."""
    rows = "SELECT e.*, simulator FROM episodes AS e JOIN runs ON runs.id = run WHERE NOT erased"
    row = drawn(hand, chance, rows)
    told = {"simulator": row["simulator"], "opening": row["opening_digest"], "by": "ada"}
    made = Erasure(episode=row["id"], run=row["run"], at=_AT, **told)
    texts = "UPDATE steps SET action = NULL, observation = NULL WHERE episode = ?"
    flag = "UPDATE episodes SET erased = ?, opening = NULL WHERE key = ?"
    changes = (texts, (row["key"],)), (flag, (True, row["key"]))
    return _declared("erasure declared", made, row["id"], *changes)


def _restore(hand: Hand, chance: random.Random) -> Mutation:
    """And its newest checkpoint taken away, with a run of his own or one that is there."""
    row = drawn(hand, chance, "SELECT run, max(length) AS length FROM checkpoints GROUP BY run")
    run = chance.choice([row["run"], chance.randbytes(16).hex(), ""])
    name = checkpoint_name(row["run"], row["length"])
    made = Restore(run=run, lost=(name,), reason="it was lost", by="ada", at=_AT)
    return _declared("restore declared", made, made.name)


def _declared(kind: str, made: Declaration, place: str, *done: Statement) -> Mutation:
    row = inserted("attestations", attested(made, stranger())._asdict())
    return Mutation(kind, made.name, frozenset({place}), executed(row, *done))


def _again(world: World, hand: Hand, chance: random.Random) -> Mutation:
    """A statement that was signed once, and declared to be lost."""
    row = chance.choice(_lost(world, hand, "attestations", "name"))
    told = executed(inserted("attestations", _unnumbered("attestations", row)))
    return Mutation("lost statement told again", row["name"], frozenset({row["name"]}), told)


def _move_again(world: World, hand: Hand, chance: random.Random) -> Mutation:
    """With what it did."""
    lost = _lost(world, hand, "attestations", "name")
    signed = chance.choice([row for row in lost if row["kind"] == "alias"])
    moves = _lost(world, hand, "aliases", "at")
    (move,) = [row for row in moves if row["at"] == signed["at"]]
    done = executed(
        inserted("attestations", _unnumbered("attestations", signed)),
        inserted("aliases", _unnumbered("aliases", move)),
    )
    return Mutation("lost move told again", move["alias"], frozenset({signed["name"]}), done)


def _run_again(world: World, hand: Hand, chance: random.Random) -> Mutation:
    """With its log and its checkpoints."""
    run = chance.choice(_lost(world, hand, "runs", "id"))
    with world.database.hand(world.lost) as before:
        own = {
            table: before.rows(f"SELECT * FROM {table} WHERE run = ?", run["id"])
            for table in ("log", "checkpoints")
        }
    rows = [("runs", run), *((table, row) for table in own for row in own[table])]
    done = executed(*(inserted(table, row) for table, row in rows))
    return Mutation("lost run told again", run["id"], frozenset({run["id"]}), done)


def _lost(world: World, hand: Hand, table: str, name: str) -> list[Row]:
    """What a table had, and has no more."""
    with world.database.hand(world.lost) as before:
        known = {row["name"] for row in hand.rows(f"SELECT {name} AS name FROM {table}")}
        rows = before.rows(f"SELECT * FROM {table} ORDER BY {name}")
    return [row for row in rows if row[name] not in known]


def _unnumbered(table: str, row: Row) -> dict[str, object]:
    number = METADATA.tables[table].autoincrement_column
    return {name: row[name] for name in row if number is None or name != number.name}
