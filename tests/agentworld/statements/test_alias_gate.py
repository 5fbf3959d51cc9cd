import pytest

from agentworld.errors import Conflict
from agentworld.records.gate import Gate
from agentworld.records.statements.alias import AliasMove
from agentworld.statements.alias_gate import check_about, check_may_move, judge
from make import records

SIMULATOR = records.manifest().digest
ARTIFACT = records.manifest().artifact
SUBJECTS = {SIMULATOR, ARTIFACT}
WORLD = records.world_report(artifacts={"sft": records.digest("other"), "rl": ARTIFACT})
AGENT = records.agent_report()


def gate(metric="exact_match", least=0.5):
    return Gate(metric=metric, least=least)


def refusal(report, *clauses, **fields):
    move = AliasMove(kind="simulator", simulator=SIMULATOR, by="ada", gate=clauses, **fields)
    try:
        check_may_move(move, report, judge(move.gate, report, SUBJECTS))
    except Conflict as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("report", "metric", "value"),
    [
        (WORLD, "exact_match", 0.82),  # of the stage that made these weights
        (WORLD, "by_tag.ls", 0.72),
        (WORLD, "live_gain", None),
        (records.world_report(artifacts={"rl": records.digest("other")}), "exact_match", None),
        (AGENT, "live_gain", 0.4),
        (AGENT, "trained.by_family.find", 0.5),
        (AGENT, "live_steps", None),  # a count, and no figure
        (records.agent_report(simulator=records.digest("other")), "live_gain", None),
        (records.agent_report(live_gain=records.estimate(0.4, num=0)), "live_gain", None),
        (None, "live_gain", None),
    ],
)
def test_a_gate_uses_only_figures_of_the_simulator_or_its_weights(report, metric, value):
    (verdict,) = judge([gate(metric)], report, SUBJECTS)
    assert verdict.value == (value if value is None else pytest.approx(value))


def test_a_passed_gate_allows_the_alias_move():
    assert refusal(AGENT, gate("live_gain", 0.4), gate("trained.live", 0.5)) is None
    assert refusal(None) is None


@pytest.mark.parametrize(
    ("report", "clause", "reason"),
    [
        (None, gate(), "the gate asks for exact_match of at least 0.5 and no report is named"),
        (AGENT, gate(), f"has no exact_match of {SIMULATOR}; name a report that does"),
        (AGENT, gate("live_gain", 0.41), "live_gain is 0.4 in the report"),
    ],
)
def test_a_refusal_names_the_figure_its_value_and_the_override(report, clause, reason):
    message = refusal(report, gate("trained.live", 0) if report else clause, clause)
    assert reason in message
    assert "override with a reason" in message
    assert refusal(report, clause, override="an outage") is None


def test_an_evaluation_of_another_simulator_is_refused_despite_an_override():
    move = AliasMove(kind="simulator", simulator=SIMULATOR, by="ada", override="an outage")
    check_about(move, WORLD, SUBJECTS)
    with pytest.raises(Conflict, match="is not an evaluation of"):
        check_about(move, WORLD, {SIMULATOR})
