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

EARLIER, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
ONE, TWO = records.digest("one"), records.digest("two")
CANARY = {"simulator": "two", "percent": 5}
REQUEST, LATER_REQUEST = "uid/1", "uid/2"


def simulator_status(digest=ONE, **verified):
    conditions = [{"type": "Verified", "status": "Unknown", "reason": "NotYet"} | verified]
    return {"status": {"digest": digest, "conditions": conditions}}


SIMULATORS = {
    "one": simulator_status(),
    "two": simulator_status(TWO, status="True"),
    "new": {},
    "bad": simulator_status(status="False", message="the weights differ"),
}


def spec(simulator="one", **fields):
    return AliasSpec.model_validate(alias(simulator, **fields)["spec"])


def change(**fields):
    return AliasChange(
        **{"alias": "stable", "simulator": ONE, "set_by": "ada", "at": EARLIER, "request": REQUEST}
        | fields
    )


def compare(*history):
    return Comparison(REQUEST, history)


@pytest.mark.parametrize(
    ("alias_spec", "meaning"),
    [
        (spec(), Meaning(ONE)),
        (spec(canary=CANARY), Meaning(ONE, Canary(simulator=TWO, percent=5))),
        (spec("nobody"), "NoSimulator"),
        (spec("new"), "NoDigest"),
        (spec("bad"), "NotVerified"),
        (spec(canary=CANARY | {"simulator": "bad"}), "NotVerified"),
    ],
)
def test_an_alias_resolves_only_to_existing_simulators_with_a_verifiable_digest(
    alias_spec, meaning
):
    resolution = resolve(alias_spec, SIMULATORS.get)
    assert (resolution.reason if isinstance(resolution, Problem) else resolution) == meaning


def test_a_move_contains_the_user_the_gate_the_report_and_the_override():
    alias_spec = spec(
        gate=[{"metric": "live_gain", "least": 0.1}], report=TWO, override={"reason": "an outage"}
    )
    new_move = move(alias_spec, Meaning(ONE), "ada", REQUEST)
    assert (new_move.simulator, new_move.by, new_move.report, new_move.request) == (
        ONE,
        "ada",
        TWO,
        REQUEST,
    )
    assert (new_move.gate[0].metric, new_move.gate[0].least, new_move.override) == (
        "live_gain",
        0.1,
        "an outage",
    )


def test_a_restored_change_names_its_author_and_time():
    canary = Canary(simulator=TWO, percent=5)
    return_move = build_return_move(change(canary=canary))
    assert (
        return_move.simulator,
        return_move.canary,
        return_move.by,
        return_move.request,
        return_move.gate,
    ) == (
        ONE,
        canary,
        OPERATOR_ACTOR,
        REQUEST,
        (),
    )
    assert return_move.override == f"the cluster refused the request after that of ada at {EARLIER}"
    condition = recorded_condition(
        compare(change(set_by=OPERATOR_ACTOR, override=return_move.override))
    )
    assert (condition.reason, condition.message) == (
        "Returned",
        f"at {EARLIER}: {return_move.override}",
    )
    assert recorded_condition(compare(change())).message == f"ada asked for it at {EARLIER}"


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ([], "means nothing; change"),
        (
            [change(ended=True, request=LATER_REQUEST)],
            f"means nothing, by ada at {EARLIER}; change",
        ),
        ([change(request=LATER_REQUEST)], f"means {ONE}, by ada at {EARLIER}; change"),
        (
            [change(), change(request=LATER_REQUEST)],
            f"means {ONE}, by ada at {EARLIER}; if the cluster",
        ),
    ],
)
def test_an_unrecorded_spec_reports_the_current_meaning_of_the_alias(history, message):
    condition = recorded_condition(compare(*history))
    assert (condition.status, f"the name {message}" in condition.message) == ("False", True)


def test_the_last_recorded_change_of_a_request_is_restored():
    other_change = change(simulator=TWO)
    assert (
        compare(change(), other_change, change(request=LATER_REQUEST)).change_to_restore
        == other_change
    )


def test_no_change_before_a_command_is_restored():
    command = change(simulator=TWO, request=None)
    assert compare(change(), command, change(request=LATER_REQUEST)).change_to_restore is None
    ended = change(ended=True, request=None)
    assert compare(change(), change(ended=True), ended).change_to_restore is None


def test_an_alias_names_a_simulator_and_its_canary_until_it_is_deleted():
    terminating_alias = alias("one", "going")
    terminating_alias["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    canary = alias("two", "trial", canary={"simulator": "one", "percent": 5})
    assert aliases_of("one", [alias("one"), canary, terminating_alias, alias("two", "b")]) == [
        "stable",
        "trial",
    ]


def state(generation, before, resolution, *history):
    comparison = compare(*history)
    return AliasState(generation, before, resolution, comparison, recorded_condition(comparison))


def test_the_status_contains_the_ledgers_digests_and_both_conditions():
    meaning = Meaning(ONE, Canary(simulator=TWO, percent=5))
    recorded = change(canary=meaning.canary)
    status = build_status(state(3, AliasStatus(), meaning, recorded), NOW)
    assert (status.digest, status.canary_digest, status.observed_generation) == (ONE, TWO, 3)
    assert [
        (condition.type, condition.status, condition.observed_generation)
        for condition in status.conditions
    ] == [
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
    ("last", "alias_spec", "is_same"),
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
        (change(request=LATER_REQUEST), spec(), False),
        (change(request=None), spec(), False),
    ],
)
def test_a_move_equal_to_the_last_change_counts_as_recorded(last, alias_spec, is_same):
    meaning = resolve(alias_spec, SIMULATORS.get)
    assert is_recorded(last, move(alias_spec, meaning, "ada", REQUEST)) is is_same


def test_only_the_same_request_after_the_same_change_has_the_same_key():
    new_move = move(spec(), Meaning(ONE), "ada", REQUEST)
    other_keys = [
        key(LATER_REQUEST, new_move, None),
        key(REQUEST, None, None),
        key(REQUEST, new_move.model_copy(update={"by": "bob"}), None),
        key(REQUEST, new_move, change()),
        key(REQUEST, new_move, change(simulator=TWO)),
    ]
    assert key(REQUEST, new_move, None) == key(REQUEST, new_move.model_copy(), None)
    assert len({key(REQUEST, new_move, None), *other_keys}) == 6
