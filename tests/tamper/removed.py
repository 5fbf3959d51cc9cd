"""What an attacker takes away, moves, or puts back as it was: whole records, and consistently."""

import json
import random

from tamper.columns import owners
from tamper.databases import Hand
from tamper.mutation import ABOUT, Case, Mutation, changed, drawn, executed, key_of, removed
from tamper.world import World

# What a run may have more of than in an old copy.
_SINCE = (
    "SELECT id, length FROM runs",
    f"SELECT {ABOUT} AS about, name FROM attestations",
    "SELECT run, id, erased FROM episodes",
    "SELECT alias, sequence FROM aliases",
)
_TEXTS = ("action", "observation")
_RUN_TABLES = ("log", "checkpoints", "episodes", "attestations")


def cases(world: World) -> list[Case]:
    """What becomes of records."""
    return [
        Case("row removed", _row),
        Case("episode removed", _episode),
        Case("run removed", _run),
        Case("statement removed", _statement),
        Case("move removed", _move),
        Case("newest moves removed", _moves),
        Case("erased texts put back", lambda hand, chance: _unerased(world, hand, chance)),
        Case("episode erased", _erased),
        Case("tail cut", _tail),
        Case("snapshot restored", lambda hand, chance: _snapshot(world, hand, chance)),
        Case("episode moved", _moved),
        Case("runs joined", _joined),
        Case("run renamed", _renamed),
        Case("steps exchanged", _exchanged),
        Case("rows exchanged", _rows),
    ]


def _row(hand: Hand, chance: random.Random) -> Mutation:
    """Of a checkpoint the second store has a copy, which proves as much as its row."""
    table, run = chance.choice([("log", "run"), ("runs", "id"), ("episodes", "run")])
    row = drawn(hand, chance, f"SELECT {', '.join(key_of(table))}, {run} AS owner FROM {table}")
    done = executed(removed(table, row))
    return Mutation("row removed", table, frozenset({row["owner"]}), done)


def _episode(hand: Hand, chance: random.Random) -> Mutation:
    row = drawn(hand, chance, "SELECT key, id, run FROM episodes")
    return Mutation(
        kind="episode removed",
        told=row["id"],
        places=frozenset({row["id"], row["run"]}),
        do=executed(
            ("DELETE FROM steps WHERE episode = ?", (row["key"],)),
            ("DELETE FROM episodes WHERE key = ?", (row["key"],)),
        ),
    )


def _run(hand: Hand, chance: random.Random) -> Mutation:
    run = drawn(hand, chance, "SELECT id FROM runs")["id"]
    steps = "DELETE FROM steps WHERE episode IN (SELECT key FROM episodes WHERE run = ?)"
    rows = [(f"DELETE FROM {table} WHERE run = ?", (run,)) for table in _RUN_TABLES]
    own = ("DELETE FROM runs WHERE id = ?", (run,))
    return Mutation("run removed", run, frozenset({run}), executed((steps, (run,)), *rows, own))


def _statement(hand: Hand, chance: random.Random) -> Mutation:
    """An edge, or what was declared; of each kind alike."""
    kind = drawn(hand, chance, "SELECT DISTINCT kind FROM attestations")["kind"]
    rows = f"SELECT name, {ABOUT} AS about FROM attestations WHERE kind = ?"
    row = drawn(hand, chance, rows, kind)
    change = ("DELETE FROM attestations WHERE name = ?", (row["name"],))
    return Mutation("statement removed", row["name"], frozenset({row["about"]}), executed(change))


def _move(hand: Hand, chance: random.Random) -> Mutation:
    """With what was signed of it, or alone."""
    row = drawn(hand, chance, "SELECT sequence, alias, at FROM aliases")
    changes = [
        removed("aliases", row),
        ("DELETE FROM attestations WHERE subject = ? AND at = ?", (row["alias"], row["at"])),
    ]
    done = executed(*changes[: chance.choice([1, 2])])
    return Mutation("move removed", row["alias"], frozenset({row["alias"]}), done)


def _moves(hand: Hand, chance: random.Random) -> Mutation:
    """With what was signed of them, so that an older one is the newest."""
    alias = drawn(hand, chance, "SELECT alias FROM aliases")["alias"]
    moves = hand.rows("SELECT sequence, at FROM aliases WHERE alias = ? ORDER BY sequence", alias)
    moves = moves[chance.randrange(len(moves)) :]
    signed = "DELETE FROM attestations WHERE subject = ? AND at = ?"
    rows = [removed("aliases", move) for move in moves]
    done = executed(*rows, *((signed, (alias, move["at"])) for move in moves))
    return Mutation("newest moves removed", f"{len(moves)} of {alias}", frozenset({alias}), done)


def _unerased(world: World, hand: Hand, chance: random.Random) -> Mutation | None:
    """As an old copy has them; with what was declared, or without it."""
    row = drawn(hand, chance, "SELECT id, run, key FROM episodes WHERE erased")
    with world.database.hand(world.snapshots[-1]) as before:
        known = before.rows(
            "SELECT key, opening FROM episodes WHERE id = ? AND NOT erased", row["id"]
        )
        texts = "SELECT episode, number, action, observation FROM steps WHERE episode = ?"
        steps = before.rows(texts, row["key"])
    if not known:
        return None
    own = {"opening": known[0]["opening"], "erased": False}
    told = [changed("steps", step, **{name: step[name] for name in _TEXTS}) for step in steps]
    forgotten = ("DELETE FROM attestations WHERE subject = ?", (row["id"],))
    changes = [changed("episodes", row, **own), *told, forgotten]
    done = executed(*changes[: len(changes) - chance.choice([0, 1])])
    places = frozenset({row["id"], row["run"]})
    return Mutation("erased texts put back", row["id"], places, done)


def _erased(hand: Hand, chance: random.Random) -> Mutation:
    """As retention would do it, which says so."""
    row = drawn(hand, chance, "SELECT key, id FROM episodes WHERE NOT erased")
    texts = "UPDATE steps SET action = NULL, observation = NULL WHERE episode = ?"
    flag = "UPDATE episodes SET erased = ?, opening = NULL WHERE key = ?"
    done = executed((texts, (row["key"],)), (flag, (True, row["key"])))
    return Mutation("episode erased", row["id"], frozenset({row["id"]}), done)


def _tail(hand: Hand, chance: random.Random) -> Mutation:
    """With all that the entries tell of, so that what is left agrees with itself."""
    row = drawn(hand, chance, "SELECT id, length FROM runs")
    run, keep = row["id"], chance.randrange(1, row["length"])
    entries = hand.rows("SELECT body FROM log WHERE run = ? AND sequence > ?", run, keep)
    told = [json.loads(entry["body"]) for entry in entries]
    unopened = [each["episode"] for each in told if each["kind"] == "episode-opened"]
    unclosed = [each["episode"] for each in told if each["kind"] == "episode-closed"]
    own = "episode IN (SELECT key FROM episodes WHERE run = ?)"
    return Mutation(
        kind="tail cut",
        told=f"{row['length'] - keep} entries of run {run}",
        places=frozenset({run}),
        do=executed(
            (f"DELETE FROM steps WHERE entry > ? AND {own}", (keep, run)),
            *(("UPDATE episodes SET closed = NULL WHERE id = ?", (each,)) for each in unclosed),
            *(("DELETE FROM episodes WHERE id = ?", (each,)) for each in unopened),
            ("DELETE FROM log WHERE run = ? AND sequence > ?", (run, keep)),
            ("DELETE FROM checkpoints WHERE run = ? AND length > ?", (run, keep)),
            ("UPDATE runs SET final_weights = NULL, signature = NULL WHERE id = ?", (run,)),
            ("UPDATE runs SET length = ? WHERE id = ?", (keep, run)),
        ),
    )


def _snapshot(world: World, hand: Hand, chance: random.Random) -> Mutation:
    old = chance.choice([*world.snapshots, world.lost])
    with world.database.hand(old) as before:
        grown = _told(hand) - _told(before)
    places = frozenset(str(run) for run, *_ in grown)
    return Mutation("snapshot restored", old, places, lambda world: world.database.put_back(old))


def _told(hand: Hand) -> set[tuple[object, ...]]:
    return {tuple(row.values()) for rows in _SINCE for row in hand.rows(rows)}


def _moved(hand: Hand, chance: random.Random) -> Mutation | None:
    row = drawn(hand, chance, "SELECT id, run FROM episodes")
    other = drawn(hand, chance, "SELECT id FROM runs")["id"]
    if other == row["run"]:
        return None
    change = ("UPDATE episodes SET run = ? WHERE id = ?", (other, row["id"]))
    places = frozenset({row["run"], other})
    return Mutation("episode moved", f"{row['id']} to run {other}", places, executed(change))


def _joined(hand: Hand, chance: random.Random) -> Mutation | None:
    """All that happened in one run is told as the end of another one."""
    row = drawn(hand, chance, "SELECT id, length FROM runs")
    other = drawn(hand, chance, "SELECT id, length FROM runs")
    if other["id"] == row["id"]:
        return None
    by, names = other["length"], (other["id"], row["id"])
    own = "episode IN (SELECT key FROM episodes WHERE run = ?)"
    return Mutation(
        kind="runs joined",
        told=f"{row['id']} into {other['id']}",
        places=frozenset(names),
        do=executed(
            (f"UPDATE steps SET entry = entry + ? WHERE {own}", (by, row["id"])),
            ("UPDATE episodes SET run = ? WHERE run = ?", names),
            (
                "UPDATE log SET run = ?, sequence = sequence + ? WHERE run = ?",
                (names[0], by, names[1]),
            ),
            ("DELETE FROM checkpoints WHERE run = ?", (row["id"],)),
            ("UPDATE runs SET length = length + ? WHERE id = ?", (row["length"], other["id"])),
            ("DELETE FROM runs WHERE id = ?", (row["id"],)),
        ),
    )


def _renamed(hand: Hand, chance: random.Random) -> Mutation:
    run, new = drawn(hand, chance, "SELECT id FROM runs")["id"], chance.randbytes(16).hex()
    rows = [(f"UPDATE {table} SET run = ? WHERE run = ?", (new, run)) for table in _RUN_TABLES]
    own = ("UPDATE runs SET id = ? WHERE id = ?", (new, run))
    return Mutation("run renamed", run, frozenset({run}), executed(*rows, own))


def _exchanged(hand: Hand, chance: random.Random) -> Mutation | None:
    """Two episodes have each other's steps."""
    row = drawn(hand, chance, "SELECT key, id, run FROM episodes")
    other = drawn(hand, chance, "SELECT key, id, run FROM episodes")
    if other["key"] == row["key"]:
        return None
    change = "UPDATE episodes SET key = ? WHERE key = ?"
    moves = [(-1, row["key"]), (row["key"], other["key"]), (other["key"], -1)]
    return Mutation(
        kind="steps exchanged",
        told=f"{row['id']} and {other['id']}",
        places=frozenset({row["run"], other["run"]}),
        do=executed(*((change, move) for move in moves)),
    )


def _rows(hand: Hand, chance: random.Random) -> Mutation | None:
    """Two rows have all of each other's values but their keys: entries in another order too."""
    table = chance.choice(["log", "steps", "checkpoints", "runs"])
    rows = f"SELECT * FROM {table}"
    row, other = drawn(hand, chance, rows), drawn(hand, chance, rows)
    if row == other:
        return None
    values = [name for name in row if name not in key_of(table)]
    changes = [(row, other), (other, row)]
    return Mutation(
        kind="rows exchanged",
        told=table,
        places=owners(hand, table, row) | owners(hand, table, other),
        do=executed(
            *(changed(table, own, **{name: new[name] for name in values}) for own, new in changes)
        ),
    )
