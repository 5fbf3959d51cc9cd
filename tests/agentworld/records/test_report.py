import json

import pytest

from agentworld.errors import InputError
from agentworld.records.report import AgentScore, parse_report, read_report
from make import records

REPORTS = [
    records.agent_report(),
    records.served_report(change=records.estimate()),
    records.world_report(),
]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: type(report).__name__)
def test_a_report_of_any_kind_is_read_back_unchanged(tmp_path, report):
    report.write(tmp_path / "report.json")
    assert read_report(tmp_path / "report.json") == parse_report(report.canonical) == report


def test_a_report_without_a_kind_is_refused(tmp_path):
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(InputError, match=r"report\.json is no report: .*field 'kind' is missing"):
        read_report(tmp_path / "report.json")
    with pytest.raises(InputError, match="this is no report: .*field 'kind' is missing"):
        parse_report(b"{}")


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.kind)
def test_a_report_with_the_wrong_kind_is_refused(report):
    fields = report.model_dump(mode="json")
    kinds = {other.kind for other in REPORTS} - {fields["kind"]}
    assert len(kinds) == 2
    for kind in (*kinds, "another"):
        with pytest.raises(InputError, match="this is no report"):
            parse_report(json.dumps(fields | {"kind": kind}).encode())


def test_a_served_report_gives_figures_only_for_its_own_subjects():
    free = {"exact_match": records.estimate(0.7), "metrics": {"rule": records.estimate(0.75)}}
    tags = {"by_tag": {"cat": records.estimate(0.6)}}
    report = records.served_report(free_running=free | tags, change=records.estimate(-0.1))
    figures = report.figures(report.subjects)
    assert {name: figure.mean for name, figure in figures.items()} == {
        "free_running.exact_match": 0.7,
        "free_running.rule": 0.75,
        "free_running.by_tag.cat": 0.6,
        "change": -0.1,
    }
    assert report.figures({records.digest("another")}) == {}


def test_an_agent_report_has_scores_of_each_training_stage_in_order():
    assert list(records.agent_report().scores) == ["base", "imitated", "trained"]


def test_only_a_report_with_live_disagreements_contains_their_field():
    plain, disputed = records.agent_report(), records.agent_report(live_disagreements=2)
    assert "live_disagreements" not in plain.model_dump()
    assert disputed.model_dump()["live_disagreements"] == 2
    assert disputed.digest != plain.digest


@pytest.mark.parametrize(
    ("simulated", "verdict"),
    [
        (0.9, "simulated success is higher than live success"),
        (0.1, "the simulator is harder"),
        (0.5, "no difference seen"),
        (0.55, "no difference seen"),
    ],
)
def test_the_gap_verdict_describes_the_sign_of_the_gap(simulated, verdict):
    score = AgentScore(simulated=records.estimate(simulated), live=records.estimate(0.5))
    assert score.gap.mean == pytest.approx(simulated - 0.5)
    assert score.gap_verdict == verdict
