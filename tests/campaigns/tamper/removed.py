"""An attacker's consistent removal, moving or restoring of whole records."""

import json
from functools import partial

from campaigns.tamper.columns import owners
from campaigns.tamper.databases import Hand, Statement
from campaigns.tamper.mutation import (
    ABOUT,
    Draw,
    Drawn,
    Mutation,
    changed,
    exchanged,
    executed,
    key_of,
    removed,
    sql,
)
from campaigns.tamper.statements import erased

# Tables with newer rows of a run than in an old copy.
_SINCE = (
    "SELECT id, log_length FROM runs",
    f"SELECT {ABOUT} AS about, name FROM attestations",
    "SELECT run, id, erased FROM episodes",
    "SELECT alias, sequence FROM aliases",
)
_TEXTS = ("action", "observation")
_RUN_TABLES = ("log", "checkpoints", "episodes", "attestations")
_OF_RUN = "episode IN (SELECT key FROM episodes WHERE run = ?)"


def _row(draw: Draw) -> Mutation:
    """No row of a checkpoint, because its copy in the evidence mirror is as good."""
    table, run = draw.chance.choice([("log", "run"), ("runs", "id"), ("episodes", "run")])
    row = draw.row(f"SELECT {', '.join(key_of(table))}, {run} AS owner FROM {table}")
    return executed(row["owner"], removed(table, row))


def _episode(draw: Draw) -> Mutation:
    row = draw.row("SELECT key, id, run FROM episodes")
    steps = sql("DELETE FROM steps WHERE episode = ?", row["key"])
    return executed({row["id"], row["run"]}, steps, removed("episodes", row))


def _run(draw: Draw) -> Mutation:
    run = draw.row("SELECT id FROM runs")
    rows = [sql(f"DELETE FROM {table} WHERE run = ?", run["id"]) for table in _RUN_TABLES]
    steps = sql(f"DELETE FROM steps WHERE {_OF_RUN}", run["id"])
    return executed(run["id"], steps, *rows, removed("runs", run))


def _statement(draw: Draw) -> Mutation:
    """An edge or a declaration; each kind equally often."""
    kind = draw.row("SELECT DISTINCT kind FROM attestations")["kind"]
    row = draw.row(f"SELECT sequence, {ABOUT} AS about FROM attestations WHERE kind = ?", kind)
    return executed(row["about"], removed("attestations", row))


def _move(draw: Draw, which: str = "kind = 'simulator'") -> Mutation:
    """Removes a move, with its signed statement or without."""
    row = draw.row(f"SELECT sequence, alias, at FROM aliases WHERE {which}")
    statement_query = "DELETE FROM attestations WHERE subject = ? AND at = ?"
    changes = [removed("aliases", row), sql(statement_query, row["alias"], row["at"])]
    return executed(row["alias"], *changes[: draw.chance.choice([1, 2])])


def _moves(draw: Draw, kind: str = "simulator", *, all_of_it: bool = False) -> Mutation:
    """Removes moves with their signed statements, so that an older move or none is the newest."""
    alias = draw.row("SELECT alias FROM aliases WHERE kind = ?", kind)["alias"]
    rows = "SELECT sequence, at FROM aliases WHERE alias = ? ORDER BY sequence"
    moves = draw.hand.rows(rows, alias)
    moves = moves[0 if all_of_it else draw.chance.randrange(len(moves)) :]
    statement_query = "DELETE FROM attestations WHERE subject = ? AND at = ?"
    statements = [
        (removed("aliases", move), sql(statement_query, alias, move["at"])) for move in moves
    ]
    return executed(alias, *(item for pair in statements for item in pair))


def _texts_put_back(draw: Draw) -> Mutation | None:
    """Restores texts from an old copy; the declaration is removed or kept."""
    row = draw.row("SELECT id, run, key FROM episodes WHERE erased")
    with draw.world.database.hand(draw.world.snapshots[-1]) as old_hand:
        openings = old_hand.rows(
            "SELECT opening FROM episodes WHERE id = ? AND NOT erased", row["id"]
        )
        texts = "SELECT episode, number, action, observation FROM steps WHERE episode = ?"
        steps = old_hand.rows(texts, row["key"])
    if not openings:
        return None
    changes = [
        changed("episodes", row, opening=openings[0]["opening"], erased=False),
        *(changed("steps", step, **{name: step[name] for name in _TEXTS}) for step in steps),
        sql("DELETE FROM attestations WHERE subject = ?", row["id"]),
    ]
    statements = changes[: len(changes) - draw.chance.choice([0, 1])]
    return executed({row["id"], row["run"]}, *statements)


def _erased(draw: Draw) -> Mutation:
    """Erases an episode without a declaration."""
    row = draw.row("SELECT key, id FROM episodes WHERE NOT erased")
    return executed(row["id"], *erased(row["key"]))


def _tail(draw: Draw) -> Mutation:
    """Cuts a log with everything that its entries cover, so that the rest is consistent."""
    row = draw.row("SELECT id, log_length FROM runs")
    run, num_kept = row["id"], draw.chance.randrange(1, row["log_length"])
    open_again = sql("UPDATE runs SET final_weights = NULL, signature = NULL WHERE id = ?", run)
    return executed(run, *cut(draw.hand, run, num_kept), open_again)


def cut(hand: Hand, run: str, num_kept: int) -> list[Statement]:
    """Deletes everything after the first entries of a run, with all that refers to it."""
    bodies = hand.rows("SELECT body FROM log WHERE run = ? AND sequence > ?", run, num_kept)
    entries = [json.loads(row["body"]) for row in bodies]
    opened_episodes = [entry["episode"] for entry in entries if entry["kind"] == "episode-opened"]
    closed_episodes = [entry["episode"] for entry in entries if entry["kind"] == "episode-closed"]
    return [
        sql(f"DELETE FROM steps WHERE entry > ? AND {_OF_RUN}", num_kept, run),
        *(sql("UPDATE episodes SET closed = NULL WHERE id = ?", item) for item in closed_episodes),
        *(sql("DELETE FROM episodes WHERE id = ?", item) for item in opened_episodes),
        sql("DELETE FROM log WHERE run = ? AND sequence > ?", run, num_kept),
        sql("DELETE FROM checkpoints WHERE run = ? AND length > ?", run, num_kept),
        sql("UPDATE runs SET log_length = ? WHERE id = ?", num_kept, run),
    ]


def _snapshot(draw: Draw) -> Mutation:
    snapshot = draw.chance.choice([*draw.world.snapshots, draw.world.lost])
    with draw.world.database.hand(snapshot) as old_hand:
        new_rows = _known(draw.hand) - _known(old_hand)
    places = frozenset(str(run) for run, *_ in new_rows)
    return Mutation(places, lambda world: world.database.put_back(snapshot), snapshot)


def _known(hand: Hand) -> set[tuple[object, ...]]:
    return {tuple(row.values()) for rows in _SINCE for row in hand.rows(rows)}


def _episode_moved(draw: Draw) -> Mutation | None:
    row = draw.row("SELECT key, run FROM episodes")
    other_run = draw.row("SELECT id FROM runs")["id"]
    if other_run == row["run"]:
        return None
    return executed({row["run"], other_run}, changed("episodes", row, run=other_run))


def _runs_joined(draw: Draw) -> Mutation | None:
    """Appends one run's records to another run."""
    row, other_row = (draw.row("SELECT id, log_length FROM runs") for _ in range(2))
    if other_row["id"] == row["id"]:
        return None
    run, target, offset = row["id"], other_row["id"], other_row["log_length"]
    log_query = "UPDATE log SET run = ?, sequence = sequence + ? WHERE run = ?"
    return executed(
        {run, target},
        sql(f"UPDATE steps SET entry = entry + ? WHERE {_OF_RUN}", offset, run),
        sql("UPDATE episodes SET run = ? WHERE run = ?", target, run),
        sql(log_query, target, offset, run),
        sql("DELETE FROM checkpoints WHERE run = ?", run),
        changed("runs", other_row, log_length=offset + row["log_length"]),
        removed("runs", row),
    )


def _run_renamed(draw: Draw) -> Mutation:
    row, new_run = draw.row("SELECT id FROM runs"), draw.new_name()
    rows = [
        sql(f"UPDATE {table} SET run = ? WHERE run = ?", new_run, row["id"])
        for table in _RUN_TABLES
    ]
    return executed(row["id"], *rows, changed("runs", row, id=new_run))


def _steps_exchanged(draw: Draw) -> Mutation | None:
    """Swaps the steps of two episodes."""
    row, other_row = (draw.row("SELECT key, run FROM episodes") for _ in range(2))
    if other_row["key"] == row["key"]:
        return None
    return executed({row["run"], other_row["run"]}, *exchanged("episodes", "key", row, other_row))


def _rows_exchanged(draw: Draw) -> Mutation | None:
    """Swaps the values of two rows except their keys, which also reorders entries."""
    table = draw.chance.choice(["log", "steps", "checkpoints", "runs"])
    row, other_row = (draw.row(f"SELECT * FROM {table}") for _ in range(2))
    if row == other_row:
        return None
    values = [name for name in row if name not in key_of(table)]
    return executed(
        owners(draw.hand, table, row) | owners(draw.hand, table, other_row),
        changed(table, row, **{name: other_row[name] for name in values}),
        changed(table, other_row, **{name: row[name] for name in values}),
    )


MUTATIONS: dict[str, Drawn] = {
    "row removed": _row,
    "episode removed": _episode,
    "run removed": _run,
    "statement removed": _statement,
    "move removed": _move,
    "newest moves removed": _moves,
    "use removed": partial(_move, which="kind = 'agent'"),
    "end of use removed": partial(_move, which="kind = 'agent' AND ended"),
    "newest uses removed": partial(_moves, kind="agent"),
    "uses of an alias removed": partial(_moves, kind="agent", all_of_it=True),
    "erased texts put back": _texts_put_back,
    "episode erased": _erased,
    "tail cut": _tail,
    "snapshot restored": _snapshot,
    "episode moved": _episode_moved,
    "runs joined": _runs_joined,
    "run renamed": _run_renamed,
    "steps exchanged": _steps_exchanged,
    "rows exchanged": _rows_exchanged,
}
