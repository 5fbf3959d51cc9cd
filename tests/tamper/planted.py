"""What an attacker puts there: rows that nobody signed, or that he signed with a key of his own."""

import random
import sqlite3
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import make
from agentworld.evidence.checkpoint import RunCheckpoint, sign_checkpoint
from agentworld.evidence.edge import sign_edge
from agentworld.evidence.keys import Signer, ensure_signer, public_pem
from agentworld.evidence.merkle import merkle_root
from agentworld.ledger.tables import METADATA
from agentworld.records.base import digest_bytes
from agentworld.records.edge import Claim, Edge, Traffic
from agentworld.records.episode import text_digest
from agentworld.records.log import LogEntry
from agentworld.simulate.notary import edge_name
from tamper.mutation import Case, Mutation, digest, drawn, executed

_Statement = tuple[str, tuple[object, ...]]
_EDGES = "SELECT rowid AS row, * FROM attestations WHERE kind = 'edge'"


def cases() -> list[Case]:
    """What is new."""
    return [
        Case("step planted", _step),
        Case("episode planted", _episode),
        Case("entry planted", _entry),
        Case("run planted", _run),
        Case("checkpoint planted", _checkpoint),
        Case("edge planted", _edge),
        Case("edge repeated", _repeated),
        Case("edge of another", _of_another),
        Case("old edge put back", _old_edge),
        Case("statement of no kind", _no_kind),
        Case("key planted", _key),
        Case("move planted", _move),
        Case("moves exchanged", _moves),
        Case("stray planted", _stray),
    ]


def _step(database: sqlite3.Connection, chance: random.Random) -> Mutation | None:
    """The next one of an episode, rightly chained, under an entry that is there or is not."""
    rows = "SELECT s.rowid AS row, e.run, e.id, s.*, length FROM steps AS s JOIN episodes AS e"
    on = "ON e.key = s.episode JOIN runs ON runs.id = e.run WHERE e.erased = 0 AND s.number = "
    newest = "(SELECT max(number) FROM steps WHERE episode = e.key)"
    row = drawn(database, chance, f"{rows} {on} {newest}")
    played = make.episode(f"planted {chance.random()}")
    step = played.steps[0]._replace(episode=row["id"], number=row["number"] + 1)
    texts = {
        "action": b"ls",
        "observation": step.observation.encode() if step.observation else b"",
        "action_digest": text_digest("ls"),
        "observation_digest": step.observation_digest,
    }
    outcome = {"reward": None, "done": 0, "truncated": 0, "mean_logprob": None, "agreement": None}
    where = {"entry": chance.choice([row["entry"], row["length"] + 1]), "place": row["place"] + 1}
    own = {"number": step.number, "head": step.head_after(row["head"]), "low_confidence": 0}
    change = _copied("steps", row["row"], **texts, **outcome, **where, **own)
    return Mutation("step planted", row["id"], frozenset({row["run"]}), executed(change))


def _episode(database: sqlite3.Connection, chance: random.Random) -> Mutation:
    row = drawn(database, chance, "SELECT rowid AS row, run FROM episodes")
    change = _copied("episodes", row["row"], key=None, id=chance.randbytes(16).hex())
    return Mutation("episode planted", row["run"], frozenset({row["run"]}), executed(change))


def _entry(database: sqlite3.Connection, chance: random.Random) -> Mutation:
    """The next one of a run that is closed: an open one may grow, and is signed again."""
    row = drawn(database, chance, "SELECT id, length FROM runs WHERE final_weights IS NOT NULL")
    fields = {"kind": "steps", "num_steps": 0, "heads": digest_bytes(b"")}
    entry = LogEntry.of(row["id"], row["length"] + 1, "2026-01-01T00:00:00.000+00:00", fields)
    return Mutation(
        kind="entry planted",
        told=row["id"],
        places=frozenset({row["id"]}),
        do=executed(
            ("INSERT INTO log VALUES (?, ?, ?)", tuple(entry)),
            ("UPDATE runs SET length = length + 1 WHERE id = ?", (row["id"],)),
        ),
    )


def _run(database: sqlite3.Connection, chance: random.Random) -> Mutation:
    row = drawn(database, chance, "SELECT rowid AS row, id FROM runs")
    new, length = chance.randbytes(16).hex(), chance.choice([0, 1, 9])
    change = _copied("runs", row["row"], id=new, length=length, final_weights=None, signature=None)
    return Mutation("run planted", f"{length} entries long", frozenset({new}), executed(change))


def _checkpoint(database: sqlite3.Connection, chance: random.Random) -> Mutation:
    """Over the true log or over half of it, by a key of his own."""
    row = drawn(database, chance, "SELECT id, simulator, length FROM runs")
    run, length = row["id"], chance.randrange(1, row["length"] + 1)
    entries = "SELECT body FROM log WHERE run = ? AND sequence <= ? ORDER BY sequence"
    root = merkle_root(each["body"] for each in database.execute(entries, (run, length)))
    made = RunCheckpoint(run=run, simulator=row["simulator"], length=length, root=root)
    values = (run, length, sign_checkpoint(made, _stranger()))
    change = ("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?)", values)
    return Mutation("checkpoint planted", run, frozenset({run}), executed(change))


def _edge(database: sqlite3.Connection, chance: random.Random) -> Mutation:
    """Proven, in his word."""
    row = drawn(database, chance, "SELECT * FROM runs WHERE final_weights IS NOT NULL")
    names = {"starting_weights": digest(chance), "simulator": row["simulator"]}
    edge = Edge(
        claim=Claim(agent="planted", artifact=digest(chance), **names),
        run=row["id"],
        tenant=row["tenant"],
        simulator=row["simulator"],
        traffic=Traffic(),
        log_length=row["length"],
        root=digest(chance),
        grade="proven",
        at="2026-01-01T00:00:00.000+00:00",
    )
    envelope = sign_edge(edge, _stranger())
    name = edge_name(edge.run, envelope)
    values = name, "edge", edge.claim.artifact, edge.simulator, edge.run, edge.at, envelope
    insert = "INSERT INTO attestations (name, kind, subject, simulator, run, at, envelope) VALUES"
    change = (f"{insert} (?, ?, ?, ?, ?, ?, ?)", values)
    return Mutation("edge planted", name, frozenset({row["id"]}), executed(change))


def _repeated(database: sqlite3.Connection, chance: random.Random) -> Mutation:
    """As if it were signed once more, and so the newest."""
    row = drawn(database, chance, _EDGES)
    name = edge_name(row["run"], chance.randbytes(8))
    change = _copied("attestations", row["row"], sequence=None, name=name)
    return Mutation("edge repeated", name, frozenset({row["run"]}), executed(change))


def _of_another(database: sqlite3.Connection, chance: random.Random) -> Mutation | None:
    """One agent's edge says of another that it was made so."""
    row, other = drawn(database, chance, _EDGES), drawn(database, chance, _EDGES)
    if row["run"] == other["run"]:
        return None
    own = other["subject"], other["simulator"], other["run"], row["row"]
    sets = "subject = ?, simulator = ?, run = ?"
    change = (f"UPDATE attestations SET {sets} WHERE rowid = ?", own)
    places = frozenset({row["run"], other["run"]})
    return Mutation("edge of another", row["name"], places, executed(change))


def _old_edge(database: sqlite3.Connection, chance: random.Random) -> Mutation:
    """What was signed of an agent first is told in place of what was signed last."""
    rows = (
        "SELECT n.rowid AS row, n.run, o.envelope, o.at FROM attestations AS n"
        " JOIN attestations AS o ON n.subject = o.subject AND n.sequence > o.sequence"
        " WHERE n.kind = 'edge' AND o.kind = 'edge'"
    )
    row = drawn(database, chance, rows)
    values = row["envelope"], row["at"], row["row"]
    change = ("UPDATE attestations SET envelope = ?, at = ? WHERE rowid = ?", values)
    return Mutation("old edge put back", row["run"], frozenset({row["run"]}), executed(change))


def _no_kind(database: sqlite3.Connection, chance: random.Random) -> Mutation:
    row = drawn(database, chance, _EDGES)
    name, kind = edge_name(row["run"], chance.randbytes(8)), chance.randbytes(3).hex()
    change = _copied("attestations", row["row"], sequence=None, name=name, kind=kind)
    return Mutation("statement of no kind", kind, frozenset({name}), executed(change))


def _key(_database: sqlite3.Connection, _chance: random.Random) -> Mutation:
    key = _stranger().public_key
    values = key.keyid, public_pem(key).decode(), "2026-01-01T00:00:00.000+00:00"
    change = ("INSERT INTO signing_keys (key, public, since) VALUES (?, ?, ?)", values)
    return Mutation("key planted", key.keyid, frozenset({key.keyid}), executed(change))


def _move(database: sqlite3.Connection, chance: random.Random) -> Mutation:
    """An alias means what it meant once, or somebody's simulator, from now on."""
    row = drawn(database, chance, "SELECT rowid AS row, alias, simulator FROM aliases")
    meant = chance.choice([row["simulator"], digest(chance)])
    new = {"sequence": None, "simulator": meant, "at": "2030-01-01T00:00:00.000+00:00"}
    change = _copied("aliases", row["row"], **new, key=None)
    return Mutation("move planted", row["alias"], frozenset({row["alias"]}), executed(change))


def _moves(database: sqlite3.Connection, chance: random.Random) -> Mutation:
    """Two moves of an alias happened the other way round."""
    rows = (
        "SELECT a.rowid AS row, b.rowid AS other, a.alias FROM aliases AS a JOIN aliases AS b"
        " ON a.alias = b.alias AND a.sequence < b.sequence"
    )
    row = drawn(database, chance, rows)
    change = "UPDATE aliases SET sequence = ? WHERE sequence = ?"
    moves = [(-1, row["row"]), (row["row"], row["other"]), (row["other"], -1)]
    return Mutation(
        kind="moves exchanged",
        told=row["alias"],
        places=frozenset({row["alias"]}),
        do=executed(*((change, move) for move in moves)),
    )


def _stray(database: sqlite3.Connection, chance: random.Random) -> Mutation:
    """A row of something that is not there: whoever joins tables does not see it."""
    new = chance.randbytes(16).hex()
    table, change = chance.choice(
        [
            ("steps", {"episode": int(new[:8], 16) + 1_000}),
            ("log", {"run": new}),
            ("episodes", {"key": None, "id": new, "run": new}),
            ("checkpoints", {"run": new}),
        ]
    )
    row = drawn(database, chance, f"SELECT rowid AS row, * FROM {table}")
    named = str(change.get("run", change.get("episode")))
    statement = _copied(table, row["row"], **change)
    return Mutation("stray planted", table, frozenset({named}), executed(statement))


def _copied(table: str, rowid: int, **changes: object) -> _Statement:
    """Adds a row like another one but for these columns."""
    columns = METADATA.tables[table].columns.keys()
    told = ", ".join("?" if column in changes else column for column in columns)
    select = f"SELECT {told} FROM {table} WHERE rowid = ?"
    values = (*(changes[column] for column in columns if column in changes), rowid)
    return f"INSERT INTO {table} ({', '.join(columns)}) {select}", values


@cache
def _stranger() -> Signer:
    """The attacker's own key."""
    with TemporaryDirectory() as folder:
        return ensure_signer(Path(folder) / "keys")
