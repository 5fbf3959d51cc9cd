from agentworld.reports.metrics import metrics_of, parts_of, registered_metrics_of
from make import records

REPORT = records.grouped_report()


def test_every_mean_of_a_report_is_available_as_a_gate_metric():
    names = metrics_of(REPORT)
    for name in (
        *("cpt.exact_match", "baseline.copy.by_tag.cat", "rl.by_kind.read.token_f1"),
        *("rl.leads.copy.token_f1", "rl.gain.by_kind.read.exact_match", "rl.token_f1"),
    ):
        assert name in names


def test_only_the_main_metrics_are_registered_with_a_version():
    names = registered_metrics_of(REPORT).keys()
    assert names < metrics_of(REPORT).keys()
    for name in ("cpt.exact_match", "rl.by_kind.read.exact_match", "rl.by_tag.cat", "rl.rule"):
        assert name in names
    assert {name for name in names if name.startswith("baseline.copy")} == {
        "baseline.copy.exact_match",
        "baseline.copy.rule",
    }
    assert not any(part in name for name in names for part in (".leads.", ".gain.", "read.token"))


def test_a_metric_name_is_split_into_subject_and_measure():
    assert parts_of("baseline.copy.by_tag.a.b") == ("baseline.copy", "by_tag.a.b")
    assert parts_of("rl.by_kind.read.token_f1") == ("rl", "by_kind.read.token_f1")
