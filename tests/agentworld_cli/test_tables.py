import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import make.job
from agentworld.reports.summary import Summary, summarise
from agentworld.reports.targets import figures_of
from agentworld.steps.table import AFTER_GATE
from agentworld_cli.show import console
from agentworld_cli.tables import show_figures, show_summary
from make import records
from make.pages import ROOT


def summary_text(folders: Mapping[str, Path]) -> str:
    with console.capture() as capture:
        show_summary(folders, summarise("demo", folders, 2.5))
    return capture.get()


@pytest.fixture
def output(tmp_path) -> str:
    return summary_text(make.job.finished_job(tmp_path))


def test_every_predictor_and_the_agent_at_each_stage_have_a_row(output):
    names = [line.split(" ")[0] for line in output.splitlines()]
    assert {"copy", "nearest", "cpt", "sft", "rl", "base", "imitated", "trained"} <= set(names)


DIFFERENCE = re.compile(r"[+-]\.?\d[.\d]* [+-][.\d]+ to [+-][.\d]+")


def test_a_row_that_claims_a_difference_has_an_interval(output):
    rows = {row.split("  ")[0]: row for row in output.splitlines()}
    for name in ("base", "imitated", "trained"):
        assert DIFFERENCE.search(rows[name]), rows[name]  # its gap
    for name in ("lead over the baselines", "gain of RL over SFT", "live gain of RL"):
        assert DIFFERENCE.search(rows[name]), rows[name]


def test_a_difference_whose_interval_contains_zero_is_printed_as_none(output):
    (row,) = [row for row in output.splitlines() if row.startswith("gain of RL over SFT")]
    assert row.split("  ")[-1].strip() == "goal: no difference seen"
    assert "+0.020 -0.010 to +0.050" in row


def test_a_mean_is_printed_with_its_interval(output):
    assert "0.820 .72-.92" in output


@pytest.mark.parametrize("page", ["README.md", "docs/guides/training.md"])
def test_a_page_shows_the_figures_of_the_latest_published_demo(page):
    figures = json.loads((ROOT / "docs/figures/demo.json").read_text())
    summary = Summary.model_validate({name: figures[name] for name in Summary.model_fields})
    with console.capture() as capture:
        show_figures(figures_of(summary))
    printed_lines = [line.rstrip() for line in capture.get().splitlines()]
    text = (ROOT / page).read_text()
    tables = re.findall(r"^(?:Figures|Differences)\n(.*?)^(?:```|$)", text, re.M | re.S)
    rows = [line for table in tables for line in table.splitlines() if "  " in line]
    assert len(rows) >= 4
    assert [row for row in rows if row not in printed_lines] == []


def test_each_goal_is_printed_as_met_or_not_met(output):
    assert "at least 0.75 yes" in output
    assert "at least 0.95 no" in output


def test_the_whole_simulator_digest_is_printed(output):
    assert records.manifest().digest in output


def test_tables_fit_into_eighty_columns(output):
    tables = output.partition("simulator:")[0]
    assert max(map(len, tables.splitlines())) <= 80


def test_a_gate_refusal_is_printed_with_its_reason_instead_of_agent_results(tmp_path):
    text = summary_text(make.job.refused_job(tmp_path))
    assert text.splitlines()[-1] == (
        f"gate: refused, rl.rule is 0.3, which is under 0.5; {', '.join(AFTER_GATE)} were skipped"
    )
    assert "simulator:" not in text
    assert "imitated" not in text
