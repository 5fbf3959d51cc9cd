from collections.abc import Mapping
from pathlib import Path

import pytest

import make
import make_job
from agentworld.steps import AFTER_GATE
from agentworld.steps.summary import summarise
from agentworld_cli.show import console
from agentworld_cli.tables import show_summary


def shown(folders: Mapping[str, Path]) -> str:
    with console.capture() as captured:
        show_summary(folders, summarise("demo", folders, 2.5))
    return captured.get()


@pytest.fixture
def printed(tmp_path) -> str:
    return shown(make_job.finished_job(tmp_path))


def test_every_predictor_and_both_agents_have_a_row(printed):
    first = [line.split(" ")[0] for line in printed.splitlines()]
    assert {"copy", "nearest", "cpt", "sft", "rl", "untrained", "trained"} <= set(first)


def test_a_mean_stands_beside_its_interval(printed):
    assert "0.820 .72-.92" in printed


def test_what_holds_and_what_does_not_is_said(printed):
    assert "at least 0.75 yes" in printed
    assert "at least 0.95 no" in printed


def test_the_simulator_is_printed_whole(printed):
    assert make.manifest().digest in printed


def test_tables_fit_into_eighty_columns(printed):
    tables = printed.partition("simulator:")[0]
    assert max(map(len, tables.splitlines())) <= 80


def test_a_refusal_is_said_with_its_reason_in_place_of_what_was_not_made(tmp_path):
    told = shown(make_job.refused_job(tmp_path))
    assert told.splitlines()[-1] == (
        f"gate: refused, rl.rule is 0.3, which is under 0.5; {', '.join(AFTER_GATE)} were skipped"
    )
    assert "simulator:" not in told
    assert "untrained" not in told
