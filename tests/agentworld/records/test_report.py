import pytest

import make
from agentworld.errors import InputError
from agentworld.records.report import parse_report, read_report

REPORTS = [make.agent_report(), make.served_report(change=make.estimate()), make.world_report()]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: type(report).__name__)
def test_a_report_of_any_kind_comes_back_as_it_was(tmp_path, report):
    report.write(tmp_path / "report.json")
    assert read_report(tmp_path / "report.json") == parse_report(report.canonical) == report


def test_what_is_no_report_is_refused(tmp_path):
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(InputError, match="is no WorldModelReport"):
        read_report(tmp_path / "report.json")
    with pytest.raises(InputError, match="this is no report"):
        parse_report(b"{}")


def test_what_was_served_tells_a_gate_its_figures_and_nobody_elses():
    free = {"exact_match": make.estimate(0.7), "rule": make.estimate(0.75)}
    classes = {"by_class": {"cat": make.estimate(0.6)}}
    report = make.served_report(free_running=free | classes, change=make.estimate(-0.1))
    found = report.figures(report.subjects)
    assert {name: each.mean for name, each in found.items()} == {
        "free_running.exact_match": 0.7,
        "free_running.rule": 0.75,
        "free_running.by_class.cat": 0.6,
        "change": -0.1,
    }
    assert report.figures({make.digest("another")}) == {}
