"""Signed statements in an attacker's hands: uses of agents, declarations, registrations.

MLflow's aliases always agree with what he makes of the uses.
"""

from agentworld.records.alias import AliasChange
from agentworld.records.attestation import Attestation
from agentworld.records.statements.agent_use import AgentUse
from agentworld.records.statements.alias import AliasEntry
from agentworld.records.statements.base import SignedRecord
from agentworld.records.statements.erasure import Erasure
from agentworld.records.statements.registration import Links, RegisteredVersion
from agentworld.records.statements.restore import Restore
from agentworld.records.statements.validation import Validation
from agentworld.records.statements.withdrawal import Withdrawal
from agentworld.signing.attestation import attest, verify_row
from agentworld.signing.checkpoint import checkpoint_name
from campaigns.tamper.databases import Row, Statement
from campaigns.tamper.mutation import (
    Draw,
    Drawn,
    Mutation,
    changed,
    executed,
    inserted,
    removed,
    sql,
    stranger,
)
from make import records

_USES = "SELECT * FROM attestations WHERE kind = 'agent-use'"
_SIGNED = ("subject", "simulator", "run", "at", "envelope")
_AT = "2030-01-01T00:00:00.000+00:00"


def _use_removed(draw: Draw) -> Mutation:
    row = draw.row(_USES)
    return executed(row["name"], removed("attestations", row))


def _end_removed(draw: Draw) -> Mutation:
    """So that it is in use still."""
    row = draw.chance.choice([row for row in draw.hand.rows(_USES) if _read(draw, row).ended])
    return executed(row["name"], removed("attestations", row))


def _newest_removed(draw: Draw) -> Mutation:
    """So that an older one counts."""
    rows = _history(draw)
    rows = rows[draw.chance.randrange(len(rows)) :]
    return executed(rows[-1]["name"], *(removed("attestations", row) for row in rows))


def _all_removed(draw: Draw) -> Mutation:
    rows = _history(draw)
    names = {row["name"] for row in rows}
    return executed(names, *(removed("attestations", row) for row in rows))


def _use_of_another(draw: Draw) -> Mutation | None:
    """What was signed of one agent is told of another one, all of it."""
    row, other = draw.row(_USES), draw.row(_USES)
    if row["envelope"] == other["envelope"]:
        return None
    own = {name: other[name] for name in _SIGNED}
    return executed(row["name"], changed("attestations", row, **own))


def _use_moved(draw: Draw) -> Mutation:
    """To another agent's name, to another alias or to another number."""
    row = draw.row(_USES)
    folder, agent, alias, number = row["name"].split("/")
    names = [
        f"{folder}/agent-{draw.chance.randrange(90, 99)}/{alias}/{number}",
        f"{folder}/{agent}/kiosk/{number}",
        f"{folder}/{agent}/{alias}/{draw.chance.randrange(90, 99):06}.dsse.json",
    ]
    return executed(row["name"], changed("attestations", row, name=draw.chance.choice(names)))


def _uses_exchanged(draw: Draw) -> Mutation | None:
    """Two uses of an alias happened the other way round."""
    rows = _history(draw)
    if len(rows) < 2:
        return None
    row, other = draw.chance.sample(rows, 2)
    changes = [("-", row), (row["name"], other), (other["name"], row)]
    done = (changed("attestations", each, name=name) for name, each in changes)
    return executed({row["name"], other["name"]}, *done)


def _old_use(draw: Draw) -> Mutation | None:
    """What was signed first is told in place of what was signed last."""
    first, *others = _history(draw)
    if not others:
        return None
    own = {name: first[name] for name in _SIGNED}
    return executed(others[-1]["name"], changed("attestations", others[-1], **own))


def _use_repeated(draw: Draw) -> Mutation:
    """What was signed once is told as the newest."""
    rows = _history(draw)
    number = len(rows) + draw.chance.randrange(3) + 1
    name = f"{rows[0]['name'].rpartition('/')[0]}/{number:06}.dsse.json"
    return executed(name, inserted("attestations", draw.chance.choice(rows), name=name))


def _use_planted(draw: Draw) -> Mutation:
    """With a key of his own."""
    newest, other = _read(draw, _history(draw)[-1]), _read(draw, draw.row(_USES))
    own = {name: getattr(other, name) for name in ("version", "artifact", "run", "simulator")}
    own |= {"number": newest.number + 1, "at": _AT, "ended": False}
    signed = attest(newest.model_copy(update=own), stranger())
    return executed(signed.name, inserted("attestations", signed._asdict()))


def _history(draw: Draw) -> list[Row]:
    """All uses of one agent's name and alias, in their order."""
    folder = draw.row(_USES)["name"].rpartition("/")[0]
    rows = draw.hand.rows(f"{_USES} ORDER BY name")
    return [each for each in rows if each["name"].rpartition("/")[0] == folder]


def _read(draw: Draw, row: Row) -> AgentUse:
    fields = {name: row[name] for name in Attestation._fields}
    signed = Attestation(**fields | {"envelope": bytes(row["envelope"])})
    return verify_row(signed, AgentUse, draw.world.evidence.trusted)


def _move_declared(draw: Draw) -> Mutation:
    """And done."""
    alias = draw.row("SELECT * FROM aliases")["alias"]
    move = {"alias": alias, "simulator": draw.digest(), "set_by": "ada", "at": _AT}
    entry = AliasEntry(change=AliasChange(**move), previous=draw.digest())
    return _declared(entry, alias, inserted("aliases", move, ended=False))


def _erasure_declared(draw: Draw) -> Mutation:
    """And done."""
    rows = "SELECT e.*, simulator FROM episodes AS e JOIN runs ON runs.id = run WHERE NOT erased"
    row = draw.row(rows)
    known = {"simulator": row["simulator"], "opening": row["opening_digest"], "by": "ada"}
    erasure = Erasure(episode=row["id"], run=row["run"], at=_AT, **known)
    return _declared(erasure, row["id"], *erased(row["key"]))


def erased(episode: int) -> list[Statement]:
    """As retention erases an episode."""
    return [
        sql("UPDATE steps SET action = NULL, observation = NULL WHERE episode = ?", episode),
        sql("UPDATE episodes SET erased = ?, opening = NULL WHERE key = ?", True, episode),
    ]


def _restore_declared(draw: Draw) -> Mutation:
    """And its newest checkpoint taken away, with a run of his own or one that is there."""
    row = draw.row("SELECT run, max(length) AS length FROM checkpoints GROUP BY run")
    run = draw.chance.choice([row["run"], draw.new_name(), ""])
    lost = (checkpoint_name(row["run"], row["length"]),)
    restore = Restore(run=run, lost=lost, reason="it was lost", by="ada", at=_AT)
    return _declared(restore, restore.path)


def _statement_again(draw: Draw) -> Mutation:
    """A statement that was signed once, and declared to be lost."""
    row = draw.chance.choice(_lost(draw, "attestations", "name"))
    return executed(row["name"], inserted("attestations", row))


def _move_again(draw: Draw) -> Mutation:
    """With what it did."""
    lost = _lost(draw, "attestations", "name")
    signed = draw.chance.choice([row for row in lost if row["kind"] == "alias"])
    (move,) = [row for row in _lost(draw, "aliases", "at") if row["at"] == signed["at"]]
    return executed(signed["name"], inserted("attestations", signed), inserted("aliases", move))


def _run_again(draw: Draw) -> Mutation:
    """With its log and its checkpoints."""
    run = draw.chance.choice(_lost(draw, "runs", "id"))
    rows = [("runs", run)]
    with draw.world.database.hand(draw.world.lost) as before:
        for table in ("log", "checkpoints"):
            own = before.rows(f"SELECT * FROM {table} WHERE run = ?", run["id"])
            rows += [(table, row) for row in own]
    return executed(run["id"], *(inserted(table, row) for table, row in rows))


def _lost(draw: Draw, table: str, name: str) -> list[Row]:
    """What a table had, and has no more."""
    with draw.world.database.hand(draw.world.lost) as before:
        known = {row["name"] for row in draw.hand.rows(f"SELECT {name} AS name FROM {table}")}
        rows = before.rows(f"SELECT * FROM {table} ORDER BY {name}")
    return [row for row in rows if row[name] not in known]


def _registration(draw: Draw) -> Mutation:
    name = f"agent-{draw.chance.randrange(100, 999)}"
    made = RegisteredVersion(
        registered_as=name,
        version=1,
        artifact=records.digest(name),
        run="",
        record=records.digest(f"record of {name}"),
        links=Links(run=f"run of {name}", model=f"model of {name}"),
        at=_AT,
    )
    return _declared(made, f"{name}@1")


def _validation(draw: Draw) -> Mutation:
    """Of an agent that is there, in another simulator than its own."""
    artifact = draw.row("SELECT subject FROM attestations WHERE kind = 'edge'")["subject"]
    known = {"artifact": artifact, "imitated": records.digest("starting"), "step": "0" * 16}
    report = records.agent_report(simulator=records.digest("next"))
    return _declared(Validation(report=report, at=_AT, **known), artifact)


def _withdrawal(draw: Draw) -> Mutation:
    """Of a version that is there, so that nobody would miss it."""
    ref = draw.row("SELECT subject FROM attestations WHERE kind = 'registration'")["subject"]
    known = {"artifact": records.digest("made"), "registered": records.digest(ref)}
    return _declared(Withdrawal(version=ref, reason="no good", by="eve", at=_AT, **known), ref)


def _declared(made: SignedRecord, place: str, *done: Statement) -> Mutation:
    """Signed with a key of his own."""
    row = inserted("attestations", attest(made, stranger())._asdict())
    return executed(place, row, *done)


MUTATIONS: dict[str, Drawn] = {
    "use removed": _use_removed,
    "end of use removed": _end_removed,
    "newest uses removed": _newest_removed,
    "uses of an alias removed": _all_removed,
    "use of another": _use_of_another,
    "use moved": _use_moved,
    "uses exchanged": _uses_exchanged,
    "old use put back": _old_use,
    "old use repeated": _use_repeated,
    "use planted": _use_planted,
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
