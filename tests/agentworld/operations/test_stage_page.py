"""The page of a stage, from its first moment to its end."""

from pathlib import Path

import pytest

from agentworld.errors import InputError
from agentworld.operations.training_run import training_run
from agentworld.runner.folders import STAGE_PAGE
from agentworld.runner.progress import ProgressFile


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which a test sets."""
    now = [1_000.0]
    monkeypatch.setattr("agentworld.operations.stage_page.time.monotonic", lambda: now[0])
    return now


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "steps" / "rl" / "0123abc"
    folder.mkdir(parents=True)
    return folder


def page_in(folder: Path) -> str:
    return (folder / STAGE_PAGE).read_text()


def report(store: Path, done: int, total: int) -> None:
    ProgressFile(store, "rl").update(done, total)


@pytest.mark.compute
def test_a_page_exists_from_the_start_and_shows_the_end_of_the_stage(folder: Path) -> None:
    with training_run(folder.parents[2], folder, {}) as on_metrics:
        assert "Running." in page_in(folder)
        on_metrics(20, {"reward": 2.5})
    assert "Finished." in page_in(folder)
    assert "Reward: reward 2.5 at step 20" in page_in(folder)


@pytest.mark.compute
def test_the_page_of_a_failed_stage_shows_the_reason(folder: Path) -> None:
    def train() -> None:
        with training_run(folder.parents[2], folder, {}) as on_metrics:
            on_metrics(20, {"loss": 2.5})
            raise InputError("the training rl diverged")

    with pytest.raises(InputError, match="the training rl diverged"):
        train()
    assert "Ended without a result: the training rl diverged" in page_in(folder)
    assert "loss 2.5 at step 20" in page_in(folder)


@pytest.mark.compute
def test_a_page_is_written_while_a_stage_runs_but_not_at_every_step(
    folder: Path, clock: list[float]
) -> None:
    with training_run(folder.parents[2], folder, {}) as on_metrics:
        on_metrics(1, {"loss": 9.0})
        assert "no figures yet" in page_in(folder)
        clock[0] += 3
        on_metrics(2, {"validation_loss": 7.0})
        assert "Figures up to step 2." in page_in(folder)
        on_metrics(2, {"loss": 5.0})
        assert "loss 9 at step 1, 5 at step 2" in page_in(folder)
        on_metrics(3, {"loss": 4.0})
        assert "Figures up to step 2." in page_in(folder)
    assert "Figures up to step 3." in page_in(folder)


@pytest.mark.compute
def test_the_remaining_time_is_estimated_from_the_resumed_step(
    folder: Path, clock: list[float]
) -> None:
    store = folder.parents[2]
    report(store, 600, 1_000)
    with training_run(store, folder, {}) as on_metrics:
        assert "Running: 60% done." in page_in(folder)
        clock[0] += 300
        report(store, 700, 1_000)
        on_metrics(1, {"loss": 1.0})
        assert "Running: 70% done, about 15 minutes left." in page_in(folder)
