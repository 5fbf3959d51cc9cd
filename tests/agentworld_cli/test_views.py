import time

import pytest

from agentworld.runner.progress import State, StepProgress
from agentworld.steps.table import MAIN_JOB
from agentworld_cli.views import BarView, LineView, show_progress


def progress(step: str, state: State, done: int = 0, **fields: object) -> StepProgress:
    defaults = {"started": time.time() - 60, "total": 100, **fields}
    return StepProgress.model_validate({"step": step, "state": state, "done": done, **defaults})


def test_the_line_view_prints_the_start_and_end_of_a_step_once(capsys):
    with LineView() as view:
        for _ in range(3):
            view.show([progress("cpt", "running")])
        for _ in range(3):
            view.show([progress("cpt", "finished", seconds=12.4)])
    assert capsys.readouterr().err == "cpt            running\ncpt            finished in 12 s\n"


@pytest.mark.parametrize(
    ("shares", "line"),
    [
        ((0, 50), "50%, 20 s to go"),
        ((14,), "14%"),  # the duration in an earlier process is unknown
        ((14, 14, 14), "14%"),
        ((0, 0, 0, 0, 10, 20, 30), "30%, 140 s to go"),  # it had to be compiled first
    ],
)
def test_a_progress_line_estimates_the_remaining_time_from_the_recent_pace(
    capsys, monkeypatch, shares, line
):
    now = 0.0
    monkeypatch.setattr("agentworld_cli.views._SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr("agentworld_cli.views.time.monotonic", lambda: now)
    with LineView() as view:
        for share in shares:
            now += 20.0
            view.show([progress("cpt", "running", done=share)])
    assert capsys.readouterr().err.splitlines()[-1] == f"cpt            {line}"


def test_show_progress_prints_the_start_the_progress_and_the_end(capsys, monkeypatch):
    monkeypatch.setattr("agentworld_cli.views._SECONDS_BETWEEN_LINES", 0.0)
    with show_progress("import") as tick:
        tick(50, 100)
    assert capsys.readouterr().err == (
        "import         running\nimport         50%, 0 s to go\nimport         finished in 0 s\n"
    )


def test_the_line_view_prints_a_reused_step(capsys):
    with LineView() as view:
        view.show([progress("cpt", "reused")])
    assert "cpt            reused" in capsys.readouterr().err


def test_the_line_view_prints_a_skipped_step(capsys):
    with LineView() as view:
        view.show([progress("register", "skipped")])
    assert capsys.readouterr().err == "register       skipped\n"


@pytest.mark.parametrize("state", ["running", "reused", "finished", "failed", "skipped"])
def test_bars_show_every_state(capsys, state):
    with BarView(MAIN_JOB) as view:
        view.show([progress("collect", "finished"), progress("cpt", state, done=50)])
    output = capsys.readouterr().err
    assert "cpt" in output
    assert "sft" not in output
