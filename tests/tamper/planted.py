"""What an attacker puts there: rows that nobody signed, or that he signed with a key of his own."""

import random

import make
from agentworld.evidence.checkpoint import RunCheckpoint, sign_checkpoint
from agentworld.evidence.edge import sign_edge
from agentworld.evidence.keys import public_pem
from agentworld.evidence.merkle import merkle_root
from agentworld.records.base import digest_bytes
from agentworld.records.edge import Claim, Edge, Traffic
from agentworld.records.episode import text_digest
from agentworld.records.log import LogEntry
from agentworld.simulate.notary import edge_name
from tamper.databases import Hand
from tamper.mutation import (
    Case,
    Mutation,
    changed,
    copied,
    digest,
    drawn,
    executed,
    removed,
)
from tamper.stranger import stranger

_EDGES = "SELECT * FROM attestations WHERE kind = 'edge'"


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


def _step(hand: Hand, chance: random.Random) -> Mutation | None:
    """The next one of an episode, rightly chained, under an entry that is there or is not."""
    rows = "SELECT s.*, e.run, e.id, length FROM steps AS s JOIN episodes AS e"
    on = "ON e.key = s.episode JOIN runs ON runs.id = e.run WHERE NOT e.erased AND s.number = "
    newest = "(SELECT max(number) FROM steps WHERE episode = e.key)"
    row = drawn(hand, chance, f"{rows} {on} {newest}")
    played = make.episode(f"planted {chance.random()}")
    step = played.steps[0]._replace(episode=row["id"], number=row["number"] + 1)
    texts = {
        "action": b"ls",
        "observation": step.observation.encode() if step.observation else b"",
        "action_digest": text_digest("ls"),
        "observation_digest": step.observation_digest,
    }
    outcome = {
        "reward": None,
        "done": False,
        "truncated": False,
        "mean_logprob": None,
        "agreement": None,
    }
    where = {"entry": chance.choice([row["entry"], row["length"] + 1]), "place": row["place"] + 1}
    own = {"number": step.number, "head": step.head_after(row["head"]), "low_confidence": False}
    change = copied("steps", row, **texts, **outcome, **where, **own)
    return Mutation("step planted", row["id"], frozenset({row["run"]}), executed(change))


def _episode(hand: Hand, chance: random.Random) -> Mutation:
    row = drawn(hand, chance, "SELECT key, run FROM episodes")
    change = copied("episodes", row, id=chance.randbytes(16).hex())
    return Mutation("episode planted", row["run"], frozenset({row["run"]}), executed(change))


def _entry(hand: Hand, chance: random.Random) -> Mutation:
    """The next one of a run that is closed: an open one may grow, and is signed again."""
    row = drawn(hand, chance, "SELECT id, length FROM runs WHERE final_weights IS NOT NULL")
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


def _run(hand: Hand, chance: random.Random) -> Mutation:
    row = drawn(hand, chance, "SELECT id FROM runs")
    new, length = chance.randbytes(16).hex(), chance.choice([0, 1, 9])
    change = copied("runs", row, id=new, length=length, final_weights=None, signature=None)
    return Mutation("run planted", f"{length} entries long", frozenset({new}), executed(change))


def _checkpoint(hand: Hand, chance: random.Random) -> Mutation:
    """Over the true log or over half of it, by a key of his own."""
    row = drawn(hand, chance, "SELECT id, simulator, length FROM runs")
    run, length = row["id"], chance.randrange(1, row["length"] + 1)
    entries = "SELECT body FROM log WHERE run = ? AND sequence <= ? ORDER BY sequence"
    root = merkle_root(bytes(each["body"]) for each in hand.rows(entries, run, length))
    made = RunCheckpoint(run=run, simulator=row["simulator"], length=length, root=root)
    values = (run, length, sign_checkpoint(made, stranger()))
    own = removed("checkpoints", {"run": run, "length": length})
    change = ("INSERT INTO checkpoints VALUES (?, ?, ?)", values)
    return Mutation("checkpoint planted", run, frozenset({run}), executed(own, change))


def _edge(hand: Hand, chance: random.Random) -> Mutation:
    """Proven, in his word."""
    row = drawn(hand, chance, "SELECT * FROM runs WHERE final_weights IS NOT NULL")
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
    envelope = sign_edge(edge, stranger())
    name = edge_name(edge.run, envelope)
    values = name, "edge", edge.claim.artifact, edge.simulator, edge.run, edge.at, envelope
    insert = "INSERT INTO attestations (name, kind, subject, simulator, run, at, envelope) VALUES"
    change = (f"{insert} (?, ?, ?, ?, ?, ?, ?)", values)
    return Mutation("edge planted", name, frozenset({row["id"]}), executed(change))


def _repeated(hand: Hand, chance: random.Random) -> Mutation:
    """As if it were signed once more, and so the newest."""
    row = drawn(hand, chance, _EDGES)
    name = edge_name(row["run"], chance.randbytes(8))
    change = copied("attestations", row, name=name)
    return Mutation("edge repeated", name, frozenset({row["run"]}), executed(change))


def _of_another(hand: Hand, chance: random.Random) -> Mutation | None:
    """One agent's edge says of another that it was made so."""
    row, other = drawn(hand, chance, _EDGES), drawn(hand, chance, _EDGES)
    if row["run"] == other["run"]:
        return None
    own = {name: other[name] for name in ("subject", "simulator", "run")}
    change = changed("attestations", row, **own)
    places = frozenset({row["run"], other["run"]})
    return Mutation("edge of another", row["name"], places, executed(change))


def _old_edge(hand: Hand, chance: random.Random) -> Mutation:
    """What was signed of an agent first is told in place of what was signed last."""
    rows = (
        "SELECT n.sequence, n.run, o.envelope, o.at FROM attestations AS n"
        " JOIN attestations AS o ON n.subject = o.subject AND n.sequence > o.sequence"
        " WHERE n.kind = 'edge' AND o.kind = 'edge'"
    )
    row = drawn(hand, chance, rows)
    change = changed("attestations", row, envelope=row["envelope"], at=row["at"])
    return Mutation("old edge put back", row["run"], frozenset({row["run"]}), executed(change))


def _no_kind(hand: Hand, chance: random.Random) -> Mutation:
    row = drawn(hand, chance, _EDGES)
    name, kind = edge_name(row["run"], chance.randbytes(8)), chance.randbytes(3).hex()
    change = copied("attestations", row, name=name, kind=kind)
    return Mutation("statement of no kind", kind, frozenset({name}), executed(change))


def _key(_hand: Hand, _chance: random.Random) -> Mutation:
    key = stranger().public_key
    values = key.keyid, public_pem(key).decode(), "2026-01-01T00:00:00.000+00:00"
    change = ("INSERT INTO signing_keys (key, public, since) VALUES (?, ?, ?)", values)
    return Mutation("key planted", key.keyid, frozenset({key.keyid}), executed(change))


def _move(hand: Hand, chance: random.Random) -> Mutation:
    """An alias means what it meant once, or somebody's simulator, from now on."""
    row = drawn(hand, chance, "SELECT sequence, alias, simulator FROM aliases")
    meant = chance.choice([row["simulator"], digest(chance)])
    new = {"simulator": meant, "at": "2030-01-01T00:00:00.000+00:00"}
    change = copied("aliases", row, **new, key=None)
    return Mutation("move planted", row["alias"], frozenset({row["alias"]}), executed(change))


def _moves(hand: Hand, chance: random.Random) -> Mutation:
    """Two moves of an alias happened the other way round."""
    rows = (
        "SELECT a.sequence AS row, b.sequence AS other, a.alias FROM aliases AS a JOIN aliases AS b"
        " ON a.alias = b.alias AND a.sequence < b.sequence"
    )
    row = drawn(hand, chance, rows)
    change = "UPDATE aliases SET sequence = ? WHERE sequence = ?"
    moves = [(-1, row["row"]), (row["row"], row["other"]), (row["other"], -1)]
    return Mutation(
        kind="moves exchanged",
        told=row["alias"],
        places=frozenset({row["alias"]}),
        do=executed(*((change, move) for move in moves)),
    )


def _stray(hand: Hand, chance: random.Random) -> Mutation:
    """A row of something that is not there: whoever joins tables does not see it."""
    new = chance.randbytes(16).hex()
    table, change = chance.choice(
        [
            ("steps", {"episode": int(new[:8], 16) + 1_000}),
            ("log", {"run": new}),
            ("episodes", {"id": new, "run": new}),
            ("checkpoints", {"run": new}),
        ]
    )
    row = drawn(hand, chance, f"SELECT * FROM {table}")
    named = str(change.get("run", change.get("episode")))
    statement = copied(table, row, **change)
    return Mutation("stray planted", table, frozenset({named}), executed(statement))
