"""What was signed of versions and agents, in a ledger that somebody else writes too."""

import random

import make
from agentworld.evidence.declared import attested
from agentworld.records.attestation import Attestation
from agentworld.records.declaration import Withdrawal
from agentworld.records.step_statement import Links, Registered, Validation
from tamper.databases import Hand
from tamper.mutation import Case, Mutation, drawn, executed
from tamper.stranger import stranger

_AT = "2026-03-01T12:00:00.000+00:00"


def cases() -> list[Case]:
    """Statements that none of ours signed."""
    return [
        Case("registration planted", _registration),
        Case("validation's statement planted", _validation),
        Case("withdrawal planted", _withdrawal),
    ]


def _registration(_hand: Hand, chance: random.Random) -> Mutation:
    name = f"agent-{chance.randrange(100, 999)}"
    made = Registered(
        registered_as=name,
        version=1,
        artifact=make.digest(name),
        run="",
        record=make.digest(f"record of {name}"),
        links=Links(run=f"run of {name}", model=f"model of {name}"),
        at=_AT,
    )
    return _planted("registration planted", f"{name}@1", attested(made, stranger()))


def _validation(hand: Hand, chance: random.Random) -> Mutation:
    """Of an agent that is there, in another simulator than its own."""
    row = drawn(hand, chance, "SELECT subject FROM attestations WHERE kind = 'edge'")
    known = {"artifact": row["subject"], "untrained": make.digest("starting"), "step": "0" * 16}
    made = Validation(report=make.agent_report(simulator=make.digest("next")), at=_AT, **known)
    return _planted("validation's statement planted", row["subject"], attested(made, stranger()))


def _withdrawal(hand: Hand, chance: random.Random) -> Mutation:
    """Of a version that is there, so that nobody would miss it."""
    wanted = "SELECT subject FROM attestations WHERE kind = 'registration'"
    ref = drawn(hand, chance, wanted)["subject"]
    known = {"artifact": make.digest("made"), "registered": make.digest(ref)}
    told = Withdrawal(version=ref, reason="it was no good", by="eve", at=_AT, **known)
    return _planted("withdrawal planted", ref, attested(told, stranger()))


def _planted(kind: str, about: str, made: Attestation) -> Mutation:
    places = ", ".join("?" * len(made))
    columns = ", ".join(Attestation._fields)
    change = (f"INSERT INTO attestations ({columns}) VALUES ({places})", tuple(made))
    return Mutation(kind, about, frozenset({about}), executed(change))
