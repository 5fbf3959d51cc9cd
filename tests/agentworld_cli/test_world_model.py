from agentworld.reports.metrics import registered_metrics_of
from agentworld_cli.world_model import _figures
from make import records


def test_a_version_is_shown_with_a_line_for_each_metric_and_grouping():
    lines = [*_figures(registered_metrics_of(records.grouped_report()), "rl")]
    assert [line.split() for line in lines] == [
        ["exact_match", "0.820"],
        ["rule", "0.800"],
        ["token_f1", "0.900"],
        "exact_match by_kind: read 0.700, unknown 0.700, write 0.700".split(),
        "exact_match by_tag: cat 0.820, history 0.770, ls 0.720, unseen 0.720".split(),
    ]
