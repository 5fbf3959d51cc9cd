import pytest

from agentworld.cluster.records.alias import AliasSpec, AliasStatus
from agentworld.records.alias import AliasChange, Canary, Meaning
from agentworld_operator.policy.alias import (
    BYPASS_ACTOR,
    AliasState,
    build_bypass_move,
    build_status,
    is_recorded,
    move,
    recorded_condition,
    resolve,
    settling_condition,
)
from agentworld_operator.policy.problem import Problem
from make import records
from make.simulator import alias

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
ONE, TWO = records.digest("one"), records.digest("two")
TRIED = {"simulator": "two", "percent": 5}


def there(digest=ONE, **verified):
    said = [{"type": "Verified", "status": "Unknown", "reason": "NotYet"} | verified]
    return {"status": {"digest": digest, "conditions": said}}


KNOWN = {
    "one": there(),
    "two": there(TWO, status="True"),
    "new": {},
    "bad": there(status="False", message="the weights differ"),
}


def spec(simulator="one", **fields):
    return AliasSpec.model_validate(alias(simulator, **fields)["spec"])


def change(**fields):
    return AliasChange(
        **{"alias": "stable", "simulator": ONE, "set_by": "ada", "at": THEN} | fields
    )


@pytest.mark.parametrize(
    ("wanted", "meaning"),
    [
        (spec(), Meaning(ONE)),
        (spec(canary=TRIED), Meaning(ONE, Canary(simulator=TWO, percent=5))),
        (spec("nobody"), "NoSimulator"),
        (spec("new"), "NoDigest"),
        (spec("bad"), "NotVerified"),
        (spec(canary=TRIED | {"simulator": "bad"}), "NotVerified"),
    ],
)
def test_a_name_means_the_digests_of_simulators_that_are_there_and_verify(wanted, meaning):
    found = resolve(wanted, KNOWN.get)
    assert (found.reason if isinstance(found, Problem) else found) == meaning


def test_the_service_is_told_who_asks_and_what_lets_it_move():
    wanted = spec(
        gate=[{"metric": "live_gain", "least": 0.1}], report=TWO, override={"reason": "an outage"}
    )
    asked = move(wanted, Meaning(ONE), "ada")
    assert (asked.simulator, asked.by, asked.report) == (ONE, "ada", TWO)
    assert (asked.gate[0].metric, asked.gate[0].least, asked.override) == (
        "live_gain",
        0.1,
        "an outage",
    )


def test_what_was_so_before_anybody_asked_is_told_as_found():
    assert (build_bypass_move(Meaning(ONE)).by, build_bypass_move(Meaning(ONE)).gate) == (
        BYPASS_ACTOR,
        (),
    )
    assert recorded_condition(change(set_by=BYPASS_ACTOR)).reason == "AsFound"
    assert recorded_condition(change()).message == f"ada asked for it at {THEN}"


@pytest.mark.parametrize(
    ("last", "known"), [(None, "nothing"), (change(ended=True), "nothing"), (change(), ONE)]
)
def test_a_difference_says_what_the_ledger_knows(last, known):
    assert f"the ledger says {known};" in settling_condition(last).message


def test_the_status_tells_digests_and_both_conditions():
    meaning = Meaning(ONE, Canary(simulator=TWO, percent=5))
    status = build_status(AliasState(3, AliasStatus(), meaning, recorded_condition(change())), NOW)
    assert (status.digest, status.canary_digest, status.observed_generation) == (ONE, TWO, 3)
    assert [(each.type, each.status, each.observed_generation) for each in status.conditions] == [
        ("Resolved", "True", 3),
        ("Recorded", "True", 3),
    ]
    again = build_status(AliasState(3, status, meaning, recorded_condition(change())), "later")
    assert again == status


def test_a_name_that_means_nothing_has_no_digest():
    status = build_status(
        AliasState(1, AliasStatus(), Problem("NoSimulator", "no"), settling_condition(None)), NOW
    )
    assert status.digest is None
    assert status.condition("Resolved").reason == "NoSimulator"


REPORT = records.digest("report")
PASSED = {"gate": ({"metric": "m", "least": 0.5, "value": 0.7},), "report": REPORT}
FAILED = {"gate": ({"metric": "m", "least": 0.5, "value": 0.1},), "report": REPORT}
GATED = {"gate": [{"metric": "m", "least": 0.5}], "report": REPORT}


@pytest.mark.parametrize(
    ("last", "wanted", "same"),
    [
        (change(), spec(), True),
        (change(override="why"), spec(override={"reason": "why"}), True),
        (change(**PASSED), spec(**GATED, override={"reason": "why"}), True),
        (change(**FAILED, override="why"), spec(**GATED, override={"reason": "why"}), True),
        (None, spec(), False),
        (change(ended=True), spec(), False),
        (change(simulator=TWO), spec(), False),
        (change(set_by="bob"), spec(), False),
        (change(canary=Canary(simulator=TWO, percent=5)), spec(), False),
        (change(override="why"), spec(override={"reason": "another"}), False),
        (change(), spec(override={"reason": "why"}), False),
        (change(**PASSED), spec(), False),
        (change(), spec(**GATED), False),
    ],
)
def test_a_move_that_the_last_word_tells_is_not_told_again(last, wanted, same):
    meaning = resolve(wanted, KNOWN.get)
    assert is_recorded(last, move(wanted, meaning, "ada")) is same
