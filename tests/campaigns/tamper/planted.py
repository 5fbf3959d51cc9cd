"""Rows that an attacker adds: unsigned, or signed with the attacker's own key."""

from functools import partial

from agentworld.records.base import digest_bytes
from agentworld.records.episode import text_digest
from agentworld.records.log import LogEntry
from agentworld.records.statements.edge import Claim, Edge, Traffic, edge_name
from agentworld.signing.checkpoint import RunCheckpoint, sign_checkpoint
from agentworld.signing.envelope import attest
from agentworld.signing.keys import public_pem
from agentworld.signing.merkle import merkle_root
from campaigns.tamper.mutation import (
    Draw,
    Drawn,
    Mutation,
    changed,
    exchanged,
    executed,
    inserted,
    removed,
    sql,
    stranger,
)
from make import records

_EDGES = "SELECT * FROM attestations WHERE kind = 'edge'"
_AT = "2026-01-01T00:00:00.000+00:00"


def _step(draw: Draw) -> Mutation:
    """The next step of an episode, correctly chained, under an existing or missing entry."""
    rows = "SELECT s.*, e.run, e.id, log_length FROM steps AS s JOIN episodes AS e"
    condition = (
        "ON e.key = s.episode JOIN runs ON runs.id = e.run WHERE NOT e.erased AND s.number = "
    )
    newest = "(SELECT max(number) FROM steps WHERE episode = e.key)"
    row = draw.row(f"{rows} {condition} {newest}")
    episode = records.episode(f"planted {draw.chance.random()}")
    step = episode.steps[0]._replace(episode=row["id"], number=row["number"] + 1)
    texts = {
        "action": b"ls",
        "observation": step.observation.encode() if step.observation else b"",
        "action_digest": text_digest("ls"),
        "observation_digest": step.observation_digest,
    }
    outcome = {"reward": None, "done": False, "truncated": False}
    confidence = {"mean_logprob": None, "agreement": None, "low_confidence": False}
    entry = draw.chance.choice([row["entry"], row["log_length"] + 1])
    position = {"number": step.number, "entry": entry, "place": row["place"] + 1}
    position["head"] = step.head_after(row["head"])
    return executed(
        row["run"], inserted("steps", row, **texts, **outcome, **confidence, **position)
    )


def _episode(draw: Draw) -> Mutation:
    row = draw.row("SELECT * FROM episodes")
    return executed(row["run"], inserted("episodes", row, id=draw.new_name()))


def _entry(draw: Draw) -> Mutation:
    """The next entry of a closed run: an open one may grow, and is signed again."""
    row = draw.row("SELECT id, log_length FROM runs WHERE final_weights IS NOT NULL")
    fields = {"kind": "steps", "num_steps": 0, "heads": digest_bytes(b"")}
    entry = LogEntry.of(row["id"], row["log_length"] + 1, _AT, fields)
    return executed(
        row["id"],
        sql("INSERT INTO log VALUES (?, ?, ?)", *entry),
        changed("runs", row, log_length=row["log_length"] + 1),
    )


def _run(draw: Draw) -> Mutation:
    new_run, row = draw.new_name(), draw.row("SELECT * FROM runs")
    values = {"id": new_run, "log_length": draw.chance.choice([0, 1, 9])}
    return executed(new_run, inserted("runs", row, **values, final_weights=None, signature=None))


def _checkpoint(draw: Draw) -> Mutation:
    """A checkpoint of the real log or of half of it, signed with the attacker's own key."""
    row = draw.row("SELECT id, simulator, log_length FROM runs")
    run, length = row["id"], draw.chance.randrange(1, row["log_length"] + 1)
    entries = "SELECT body FROM log WHERE run = ? AND sequence <= ? ORDER BY sequence"
    root = merkle_root(bytes(row["body"]) for row in draw.hand.rows(entries, run, length))
    checkpoint = RunCheckpoint(
        run=run, simulator=row["simulator"], length=length, root=root, traffic=Traffic()
    )
    values = {"run": run, "length": length, "envelope": sign_checkpoint(checkpoint, stranger())}
    return executed(run, removed("checkpoints", values), inserted("checkpoints", values))


def _edge(draw: Draw) -> Mutation:
    """An edge with the grade proven, signed by the attacker."""
    row = draw.row("SELECT * FROM runs WHERE final_weights IS NOT NULL")
    names = {"starting_weights": draw.digest(), "simulator": row["simulator"]}
    edge = Edge(
        claim=Claim(agent="planted", artifact=draw.digest(), **names),
        run=row["id"],
        tenant=row["tenant"],
        simulator=row["simulator"],
        traffic=Traffic(),
        log_length=row["log_length"],
        root=draw.digest(),
        grade="proven",
        at=_AT,
    )
    values = attest(edge, stranger())._asdict()
    return executed(row["id"], inserted("attestations", {"kind": "edge"}, **values))


def _edge_repeated(draw: Draw) -> Mutation:
    """A copy of an edge as the newest one."""
    row = draw.row(_EDGES)
    name = edge_name(row["run"], draw.chance.randbytes(8))
    return executed(row["run"], inserted("attestations", row, name=name))


def _edge_of_another(draw: Draw) -> Mutation | None:
    """The edge of another agent."""
    row, other_row = draw.row(_EDGES), draw.row(_EDGES)
    if row["run"] == other_row["run"]:
        return None
    values = {name: other_row[name] for name in ("subject", "simulator", "run")}
    return executed({row["run"], other_row["run"]}, changed("attestations", row, **values))


def _old_edge(draw: Draw) -> Mutation:
    """An agent's older edge replaces its newest one."""
    row = draw.row(
        "SELECT n.sequence, n.run, o.envelope, o.at FROM attestations AS n"
        " JOIN attestations AS o ON n.subject = o.subject AND n.sequence > o.sequence"
        " WHERE n.kind = 'edge' AND o.kind = 'edge'"
    )
    values = {"envelope": row["envelope"], "at": row["at"]}
    return executed(row["run"], changed("attestations", row, **values))


def _no_kind(draw: Draw) -> Mutation:
    row = draw.row(_EDGES)
    name, kind = edge_name(row["run"], draw.chance.randbytes(8)), draw.chance.randbytes(3).hex()
    return executed(name, inserted("attestations", row, name=name, kind=kind))


def _key(_: Draw) -> Mutation:
    key = stranger().public_key
    values = {"key": key.keyid, "public": public_pem(key).decode(), "since": _AT}
    return executed(key.keyid, inserted("signing_keys", values))


def _move(draw: Draw) -> Mutation:
    """An alias gets an earlier target again, or an arbitrary simulator."""
    row = draw.row("SELECT * FROM aliases")
    values = {"simulator": draw.chance.choice([row["simulator"], draw.digest()])}
    values["at"] = "2030-01-01T00:00:00.000+00:00"
    return executed(row["alias"], inserted("aliases", row, **values, idempotency_key=None))


def _moves_exchanged(draw: Draw, kind: str = "simulator") -> Mutation:
    """Swaps two moves of an alias."""
    row = draw.row(
        "SELECT a.sequence, b.sequence AS other, a.alias FROM aliases AS a JOIN aliases AS b"
        " ON a.alias = b.alias AND a.sequence < b.sequence WHERE a.kind = ?",
        kind,
    )
    moves = exchanged("aliases", "sequence", row, {"sequence": row["other"]})
    return executed(row["alias"], *moves)


def _stray(draw: Draw) -> Mutation:
    """A row with a dangling reference, which joins omit."""
    missing_name = draw.new_name()
    table, values = draw.chance.choice(
        [
            ("steps", {"episode": int(missing_name[:8], 16) + 1_000}),
            ("log", {"run": missing_name}),
            ("episodes", {"id": missing_name, "run": missing_name}),
            ("checkpoints", {"run": missing_name}),
        ]
    )
    place = str(values.get("run", values.get("episode")))
    return executed(place, inserted(table, draw.row(f"SELECT * FROM {table}"), **values))


MUTATIONS: dict[str, Drawn] = {
    "step planted": _step,
    "episode planted": _episode,
    "entry planted": _entry,
    "run planted": _run,
    "checkpoint planted": _checkpoint,
    "edge planted": _edge,
    "edge repeated": _edge_repeated,
    "edge of another": _edge_of_another,
    "old edge put back": _old_edge,
    "statement of no kind": _no_kind,
    "key planted": _key,
    "move planted": _move,
    "moves exchanged": _moves_exchanged,
    "uses exchanged": partial(_moves_exchanged, kind="agent"),
    "stray planted": _stray,
}
