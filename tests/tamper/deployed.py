"""Who is in use as what, in an attacker's hands: the registry tells all that he makes of it."""

import random
from collections.abc import Callable

from agentworld.evidence.deployment import read_deployment, sign_deployment
from agentworld.evidence.keys import TrustedKeys
from agentworld.records.attestation import Attestation
from agentworld.records.deployment import Deployment
from tamper.databases import Hand, Row
from tamper.mutation import Case, Mutation, changed, copied, drawn, executed, inserted, removed
from tamper.stranger import stranger
from tamper.world import World

_USES = "SELECT * FROM attestations WHERE kind = 'deployment'"
_SIGNED = ("subject", "simulator", "run", "at", "envelope")


def cases(trusted: TrustedKeys) -> list[Case]:
    """What becomes of a use; what is signed by these keys the attacker can read."""
    return [
        Case("use removed", _removed),
        Case("end of use removed", lambda hand, chance: _end_removed(hand, chance, trusted)),
        Case("newest uses removed", _cut),
        Case("uses of an alias removed", _forgotten),
        Case("use of another", _of_another),
        Case("use moved", _moved),
        Case("uses exchanged", _exchanged),
        Case("old use put back", _old),
        Case("old use repeated", _repeated),
        Case("use planted", lambda hand, chance: _planted(hand, chance, trusted)),
    ]


def _removed(hand: Hand, chance: random.Random) -> Mutation:
    row = drawn(hand, chance, _USES)
    return _told("use removed", [row], executed(removed("attestations", row)))


def _end_removed(hand: Hand, chance: random.Random, trusted: TrustedKeys) -> Mutation:
    """So that it is in use still."""
    ended = [row for row in hand.rows(_USES) if _read(row, trusted).ended]
    row = chance.choice(ended)
    return _told("end of use removed", [row], executed(removed("attestations", row)))


def _cut(hand: Hand, chance: random.Random) -> Mutation:
    """So that an older one counts."""
    rows = _history(hand, drawn(hand, chance, _USES))
    rows = rows[chance.randrange(len(rows)) :]
    done = executed(*(removed("attestations", row) for row in rows))
    return _told("newest uses removed", rows[-1:], done)


def _forgotten(hand: Hand, chance: random.Random) -> Mutation:
    rows = _history(hand, drawn(hand, chance, _USES))
    done = executed(*(removed("attestations", row) for row in rows))
    return _told("uses of an alias removed", rows, done)


def _of_another(hand: Hand, chance: random.Random) -> Mutation | None:
    """What was signed of one agent is told of another one, all of it."""
    row, other = drawn(hand, chance, _USES), drawn(hand, chance, _USES)
    if row["envelope"] == other["envelope"]:
        return None
    own = {name: other[name] for name in _SIGNED}
    return _told("use of another", [row], executed(changed("attestations", row, **own)))


def _moved(hand: Hand, chance: random.Random) -> Mutation:
    """To another agent's name, to another alias or to another number."""
    row = drawn(hand, chance, _USES)
    folder, agent, alias, number = row["name"].split("/")
    names = [
        f"{folder}/agent-{chance.randrange(90, 99)}/{alias}/{number}",
        f"{folder}/{agent}/kiosk/{number}",
        f"{folder}/{agent}/{alias}/{chance.randrange(90, 99):06}.dsse.json",
    ]
    change = changed("attestations", row, name=chance.choice(names))
    return _told("use moved", [row], executed(change))


def _exchanged(hand: Hand, chance: random.Random) -> Mutation | None:
    """Two uses of an alias happened the other way round."""
    rows = _history(hand, drawn(hand, chance, _USES))
    if len(rows) < 2:
        return None
    row, other = chance.sample(rows, 2)
    changes = [("-", row), (row["name"], other), (other["name"], row)]
    done = executed(*(changed("attestations", each, name=name) for name, each in changes))
    return _told("uses exchanged", [row, other], done)


def _old(hand: Hand, chance: random.Random) -> Mutation | None:
    """What was signed first is told in place of what was signed last."""
    rows = _history(hand, drawn(hand, chance, _USES))
    if len(rows) < 2:
        return None
    own = {name: rows[0][name] for name in _SIGNED}
    done = executed(changed("attestations", rows[-1], **own))
    return _told("old use put back", rows[-1:], done)


def _repeated(hand: Hand, chance: random.Random) -> Mutation:
    """What was signed once is told as the newest."""
    row = drawn(hand, chance, _USES)
    folder, number = row["name"].rpartition("/")[0], len(_history(hand, row)) + chance.randrange(3)
    name = f"{folder}/{number + 1:06}.dsse.json"
    done = executed(copied("attestations", row, name=name))
    return Mutation("old use repeated", name, frozenset({name}), done)


def _planted(hand: Hand, chance: random.Random, trusted: TrustedKeys) -> Mutation:
    """With a key of his own."""
    rows = _history(hand, drawn(hand, chance, _USES))
    newest, other = _read(rows[-1], trusted), _read(drawn(hand, chance, _USES), trusted)
    own = {"number": newest.number + 1, "at": "2030-01-01T00:00:00.000+00:00", "ended": False}
    told = {name: getattr(other, name) for name in ("version", "artifact", "run", "simulator")}
    made = sign_deployment(newest.model_copy(update={**told, **own}), stranger())
    done = executed(inserted("attestations", made._asdict()))
    return Mutation("use planted", made.name, frozenset({made.name}), done)


def _history(hand: Hand, row: Row) -> list[Row]:
    """All of the name and the alias that this one is of, in their order."""
    folder = row["name"].rpartition("/")[0]
    rows = hand.rows(f"{_USES} ORDER BY name")
    return [each for each in rows if each["name"].rpartition("/")[0] == folder]


def _read(row: Row, trusted: TrustedKeys) -> Deployment:
    told = {name: row[name] for name in Attestation._fields}
    return read_deployment(Attestation(**told | {"envelope": bytes(row["envelope"])}), trusted)


def _told(kind: str, rows: list[Row], do: Callable[[World], object]) -> Mutation:
    names = frozenset(row["name"] for row in rows)
    return Mutation(kind, ", ".join(sorted(names)), names, do)
