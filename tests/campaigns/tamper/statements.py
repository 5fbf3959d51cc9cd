"""An attacker's changes of signed statements: uses of agents, declarations, registrations.

MLflow's aliases always agree with the changed uses.
"""

from functools import partial

from agentworld.records.statements.alias import AgentVersion, AliasChange, AliasEntry
from agentworld.records.statements.base import SignedRecord
from agentworld.records.statements.erasure import Erasure
from agentworld.records.statements.registration import Links, RegisteredVersion
from agentworld.records.statements.restore import Restore
from agentworld.records.statements.validation import Validation
from agentworld.records.statements.withdrawal import Withdrawal
from agentworld.signing.checkpoint import checkpoint_name
from agentworld.signing.envelope import attest
from campaigns.tamper.databases import Row, Statement
from campaigns.tamper.mutation import (
    Draw,
    Drawn,
    Mutation,
    changed,
    executed,
    inserted,
    sql,
    stranger,
)
from make import records

_USES = (
    "SELECT s.*, s.subject AS alias FROM attestations AS s JOIN aliases AS a"
    " ON a.alias = s.subject AND a.at = s.at WHERE a.kind = 'agent'"
)
_SIGNED = ("subject", "simulator", "run", "at", "envelope")
_VERSION = ("version", "artifact", "run")
_MEANT = ("alias", "simulator", *_VERSION, "set_by", "at", "reason", "ended")
_AT = "2030-01-01T00:00:00.000+00:00"


def _use_of_another(draw: Draw) -> Mutation | None:
    """Assigns all statements of one agent to another."""
    return _told_as(draw, draw.row(_USES), draw.row(_USES))


def _old_use(draw: Draw) -> Mutation | None:
    """The oldest statement replaces the newest."""
    alias = draw.row(_USES)["alias"]
    rows = draw.hand.rows(f"{_USES} AND a.alias = ? ORDER BY s.sequence", alias)
    return _told_as(draw, rows[-1], rows[0])


def _told_as(draw: Draw, row: Row, other_row: Row) -> Mutation | None:
    if row["envelope"] == other_row["envelope"]:
        return None
    change, other_change = _change_of(draw, row), _change_of(draw, other_row)
    return executed(
        row["alias"],
        changed("attestations", row, **{name: other_row[name] for name in _SIGNED}),
        changed("aliases", change, **{name: other_change[name] for name in _MEANT}),
    )


def _use_moved(draw: Draw) -> Mutation:
    """Changes its agent's name, its alias or its digest."""
    row = draw.row(_USES)
    folder, kind, agent, alias, name = row["name"].split("/")
    names = [
        f"{folder}/{kind}/agent-{draw.chance.randrange(90, 99)}/{alias}/{name}",
        f"{folder}/{kind}/{agent}/kiosk/{name}",
        f"{folder}/{kind}/{agent}/{alias}/{draw.digest().removeprefix('sha256:')}.dsse.json",
    ]
    return executed(row["alias"], changed("attestations", row, name=draw.chance.choice(names)))


def _use_repeated(draw: Draw) -> Mutation:
    """A copy of a statement as the newest."""
    row, digest = draw.row(_USES), draw.digest().removeprefix("sha256:")
    name = f"{row['name'].rpartition('/')[0]}/{digest}.dsse.json"
    return executed(
        row["alias"],
        inserted("attestations", row, name=name),
        inserted("aliases", _change_of(draw, row), idempotency_key=None),
    )


def _change_of(draw: Draw, row: Row) -> Row:
    key = row["alias"], row["at"]
    (change,) = draw.hand.rows("SELECT * FROM aliases WHERE alias = ? AND at = ?", *key)
    return change


def _move_declared(draw: Draw, kind: str = "simulator") -> Mutation:
    """A declared and executed move."""
    row, other_row = (draw.row("SELECT * FROM aliases WHERE kind = ?", kind) for _ in range(2))
    version = {name: other_row[name] for name in _VERSION}
    move = {"kind": kind, "alias": row["alias"], "simulator": draw.digest()}
    move |= {"set_by": "ada", "at": _AT}
    agent = AgentVersion.model_validate(version) if kind == "agent" else None
    entry = AliasEntry(change=AliasChange(agent=agent, **move), previous=draw.digest())
    return _declared(entry, row["alias"], inserted("aliases", move | version, ended=False))


def _erasure_declared(draw: Draw) -> Mutation:
    """A declared and executed erasure."""
    rows = "SELECT e.*, simulator FROM episodes AS e JOIN runs ON runs.id = run WHERE NOT erased"
    row = draw.row(rows)
    fields = {"simulator": row["simulator"], "opening": row["opening_digest"], "by": "ada"}
    erasure = Erasure(episode=row["id"], run=row["run"], at=_AT, **fields)
    return _declared(erasure, row["id"], *erased(row["key"]))


def erased(episode: int) -> list[Statement]:
    """Erases an episode as retention does."""
    return [
        sql("UPDATE steps SET action = NULL, observation = NULL WHERE episode = ?", episode),
        sql("UPDATE episodes SET erased = ?, opening = NULL WHERE key = ?", True, episode),
    ]


def _restore_declared(draw: Draw) -> Mutation:
    """A declaration that a run's newest checkpoint is lost, for that run, a new run or none."""
    row = draw.row("SELECT run, max(length) AS length FROM checkpoints GROUP BY run")
    run = draw.chance.choice([row["run"], draw.new_name(), ""])
    lost_names = (checkpoint_name(row["run"], row["length"]),)
    restore = Restore(run=run, lost=lost_names, reason="it was lost", by="ada", at=_AT)
    return _declared(restore, restore.path)


def _statement_again(draw: Draw) -> Mutation:
    """A statement that was signed once, and declared lost."""
    row = draw.chance.choice(_lost(draw, "attestations", "name"))
    return executed(row["name"], inserted("attestations", row))


def _move_again(draw: Draw) -> Mutation:
    """A lost statement of a move, with its move."""
    lost_rows = _lost(draw, "attestations", "name")
    statement_row = draw.chance.choice([row for row in lost_rows if row["kind"] == "alias"])
    (move,) = [row for row in _lost(draw, "aliases", "at") if row["at"] == statement_row["at"]]
    return executed(
        statement_row["name"], inserted("attestations", statement_row), inserted("aliases", move)
    )


def _run_again(draw: Draw) -> Mutation:
    """A lost run, with its log and its checkpoints."""
    run = draw.chance.choice(_lost(draw, "runs", "id"))
    rows = [("runs", run)]
    with draw.world.database.hand(draw.world.lost) as old_hand:
        for table in ("log", "checkpoints"):
            table_rows = old_hand.rows(f"SELECT * FROM {table} WHERE run = ?", run["id"])
            rows += [(table, row) for row in table_rows]
    return executed(run["id"], *(inserted(table, row) for table, row in rows))


def _lost(draw: Draw, table: str, name: str) -> list[Row]:
    """Rows that a table no longer has."""
    with draw.world.database.hand(draw.world.lost) as old_hand:
        present = {row["name"] for row in draw.hand.rows(f"SELECT {name} AS name FROM {table}")}
        rows = old_hand.rows(f"SELECT * FROM {table} ORDER BY {name}")
    return [row for row in rows if row[name] not in present]


def _registration(draw: Draw) -> Mutation:
    name = f"agent-{draw.chance.randrange(100, 999)}"
    version = RegisteredVersion(
        registered_as=name,
        version=1,
        artifact=records.digest(name),
        run="",
        record=records.digest(f"record of {name}"),
        links=Links(run=f"run of {name}", model=f"model of {name}"),
        at=_AT,
    )
    return _declared(version, f"{name}@1")


def _validation(draw: Draw) -> Mutation:
    """A validation of an existing agent in another simulator than its own."""
    artifact = draw.row("SELECT subject FROM attestations WHERE kind = 'edge'")["subject"]
    fields = {"artifact": artifact, "imitated": records.digest("starting"), "step": "0" * 16}
    report = records.agent_report(simulator=records.digest("next"))
    return _declared(Validation(report=report, at=_AT, **fields), artifact)


def _withdrawal(draw: Draw) -> Mutation:
    """A withdrawal of an existing version, so that its deletion would not be reported."""
    ref = draw.row("SELECT subject FROM attestations WHERE kind = 'registration'")["subject"]
    fields = {"artifact": records.digest("made"), "registered": records.digest(ref)}
    return _declared(Withdrawal(version=ref, reason="no good", by="eve", at=_AT, **fields), ref)


def _declared(record: SignedRecord, place: str, *statements: Statement) -> Mutation:
    """A statement signed with the attacker's own key."""
    row = inserted("attestations", attest(record, stranger())._asdict())
    return executed(place, row, *statements)


MUTATIONS: dict[str, Drawn] = {
    "use of another": _use_of_another,
    "use moved": _use_moved,
    "old use put back": _old_use,
    "old use repeated": _use_repeated,
    "use planted": partial(_move_declared, kind="agent"),
    "move declared": _move_declared,
    "erasure declared": _erasure_declared,
    "restore declared": _restore_declared,
    "lost statement told again": _statement_again,
    "lost move told again": _move_again,
    "lost run told again": _run_again,
    "registration planted": _registration,
    "validation's statement planted": _validation,
    "withdrawal planted": _withdrawal,
}
