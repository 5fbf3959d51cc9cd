import pytest

from agentworld.cluster.records.alias import AliasSpec, AliasStatus
from agentworld.records.statements.alias import AliasChange, Canary, Meaning
from agentworld_operator.policy.alias import (
    OPERATOR_ACTOR,
    AliasState,
    Comparison,
    aliases_of,
    build_return_move,
    build_status,
    is_recorded,
    key,
    move,
    recorded_condition,
    resolve,
)
from agentworld_operator.policy.problem import Problem
from make import records
from make.simulator import alias

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
ONE, TWO = records.digest("one"), records.digest("two")
TRIED = {"simulator": "two", "percent": 5}
REQUEST, LATER = "uid/1", "uid/2"


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
        **{"alias": "stable", "simulator": ONE, "set_by": "ada", "at": THEN, "request": REQUEST}
        | fields
    )


def compared(*history):
    return Comparison(REQUEST, history)


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
def test_an_alias_resolves_only_to_existing_simulators_with_a_verifiable_digest(wanted, meaning):
    found = resolve(wanted, KNOWN.get)
    assert (found.reason if isinstance(found, Problem) else found) == meaning


def test_a_move_contains_the_user_the_gate_the_report_and_the_override():
    wanted = spec(
        gate=[{"metric": "live_gain", "least": 0.1}], report=TWO, override={"reason": "an outage"}
    )
    asked = move(wanted, Meaning(ONE), "ada", REQUEST)
    assert (asked.simulator, asked.by, asked.report, asked.request) == (ONE, "ada", TWO, REQUEST)
    assert (asked.gate[0].metric, asked.gate[0].least, asked.override) == (
        "live_gain",
        0.1,
        "an outage",
    )


def test_a_restored_change_names_its_author_and_time():
    canary = Canary(simulator=TWO, percent=5)
    again = build_return_move(change(canary=canary))
    assert (again.simulator, again.canary, again.by, again.request, again.gate) == (
        ONE,
        canary,
        OPERATOR_ACTOR,
        REQUEST,
        (),
    )
    assert again.override == f"the cluster refused the request after that of ada at {THEN}"
    returned = recorded_condition(compared(change(set_by=OPERATOR_ACTOR, override=again.override)))
    assert (returned.reason, returned.message) == ("Returned", f"at {THEN}: {again.override}")
    assert recorded_condition(compared(change())).message == f"ada asked for it at {THEN}"


@pytest.mark.parametrize(
    ("history", "known"),
    [
        ([], "means nothing; change"),
        ([change(ended=True, request=LATER)], f"means nothing, by ada at {THEN}; change"),
        ([change(request=LATER)], f"means {ONE}, by ada at {THEN}; change"),
        ([change(), change(request=LATER)], f"means {ONE}, by ada at {THEN}; if the cluster"),
    ],
)
def test_an_unrecorded_spec_reports_the_current_meaning_of_the_alias(history, known):
    condition = recorded_condition(compared(*history))
    assert (condition.status, f"the name {known}" in condition.message) == ("False", True)


def test_the_last_recorded_change_of_a_request_is_restored():
    other = change(simulator=TWO)
    assert compared(change(), other, change(request=LATER)).change_to_restore == other


def test_no_change_before_a_command_is_restored():
    command = change(simulator=TWO, request=None)
    assert compared(change(), command, change(request=LATER)).change_to_restore is None
    ended = change(ended=True, request=None)
    assert compared(change(), change(ended=True), ended).change_to_restore is None


def test_an_alias_names_a_simulator_and_its_canary_until_it_is_deleted():
    going = alias("one", "going")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    canary = alias("two", "trial", canary={"simulator": "one", "percent": 5})
    assert aliases_of("one", [alias("one"), canary, going, alias("two", "b")]) == [
        "stable",
        "trial",
    ]


def state(generation, before, wanted, *history):
    compared_now = compared(*history)
    return AliasState(generation, before, wanted, compared_now, recorded_condition(compared_now))


def test_the_status_contains_the_ledgers_digests_and_both_conditions():
    meaning = Meaning(ONE, Canary(simulator=TWO, percent=5))
    recorded = change(canary=meaning.canary)
    status = build_status(state(3, AliasStatus(), meaning, recorded), NOW)
    assert (status.digest, status.canary_digest, status.observed_generation) == (ONE, TWO, 3)
    assert [(each.type, each.status, each.observed_generation) for each in status.conditions] == [
        ("Resolved", "True", 3),
        ("Recorded", "True", 3),
    ]
    assert build_status(state(3, status, meaning, recorded), "later") == status


def test_an_alias_without_a_recorded_meaning_has_no_digest():
    before = AliasStatus(digest=ONE, canary_digest=TWO)
    status = build_status(state(1, before, Problem("NoSimulator", "no")), NOW)
    assert (status.digest, status.canary_digest) == (None, None)
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
        (change(request=LATER), spec(), False),
        (change(request=None), spec(), False),
    ],
)
def test_a_move_equal_to_the_last_change_counts_as_recorded(last, wanted, same):
    meaning = resolve(wanted, KNOWN.get)
    assert is_recorded(last, move(wanted, meaning, "ada", REQUEST)) is same


def test_only_the_same_request_after_the_same_change_has_the_same_key():
    asked = move(spec(), Meaning(ONE), "ada", REQUEST)
    others = [
        key(LATER, asked, None),
        key(REQUEST, None, None),
        key(REQUEST, asked.model_copy(update={"by": "bob"}), None),
        key(REQUEST, asked, change()),
        key(REQUEST, asked, change(simulator=TWO)),
    ]
    assert key(REQUEST, asked, None) == key(REQUEST, asked.model_copy(), None)
    assert len({key(REQUEST, asked, None), *others}) == 6
