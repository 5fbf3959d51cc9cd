"""Steps of several parts: a restarted step repeats no finished part."""

import itertools
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentworld.errors import EngineError
from agentworld.evaluate.world import ScoredWorld
from agentworld.recipes.serve import EvaluateRecipe
from agentworld.runner.folders import reuse_or_train
from agentworld.steps.run import run_by_name
from make import records
from make.training import training

pytestmark = pytest.mark.waits  # these steps import torch and MLflow


SCORES = ScoredWorld(score=records.world_score(), exact=((True, None), (False,)))


def test_a_finished_training_is_not_repeated(tmp_path):
    checkpoint = records.checkpoint("imitation")
    checkpoint.write(tmp_path / "checkpoint.json")
    assert reuse_or_train(tmp_path, lambda: pytest.fail("trained again")) == checkpoint


def test_a_stage_whose_report_failed_repeats_no_training_step(tmp_path, monkeypatch):
    @contextmanager
    def failing_run(*_):
        yield lambda *_: None
        raise OSError("the disk is broken")

    inputs = training(tmp_path / "store", cpt={"epochs": 1})
    with monkeypatch.context() as patch:
        patch.setattr("agentworld.operations.training_run.training_run", failing_run)
        with pytest.raises(OSError, match="the disk is broken"):
            run_by_name("cpt", *inputs)
    monkeypatch.setattr(
        "transformers.Trainer.training_step", lambda *_: pytest.fail("trained again")
    )
    folder = Path(run_by_name("cpt", *inputs))
    assert not (folder / "checkpoints").exists()


@pytest.mark.parametrize("concurrency", [1, 2])
def test_finished_scores_are_not_computed_again(tmp_path, concurrency):
    from agentworld.steps.evaluate import _run_all

    calls = []

    def scorer(name):
        def score(_tick):
            calls.append(name)
            if name == "sft" and calls.count("sft") == 1:
                raise EngineError("gone")
            return SCORES

        return score

    scorers = {name: scorer(name) for name in ("copy", "cpt", "sft")}
    with pytest.raises(EngineError):
        _run_all(scorers, EvaluateRecipe(at_once=concurrency), tmp_path, lambda *_: None)
    assert set(
        _run_all(scorers, EvaluateRecipe(at_once=concurrency), tmp_path, lambda *_: None)
    ) == set(scorers)
    assert sorted(calls) == ["copy", "cpt", "sft", "sft"]


@pytest.mark.parametrize("concurrency", [1, 2])
def test_the_progress_of_several_scores_never_decreases(tmp_path, concurrency):
    from agentworld.steps.evaluate import _run_all

    values = []

    def score(tick):
        tick(1, 2)
        tick(2, 2)
        return SCORES

    scorers = {"copy": score, "cpt": score}
    _run_all(scorers, EvaluateRecipe(at_once=concurrency), tmp_path, lambda n, _: values.append(n))
    assert values == [250, 500, 750, 1000]
    assert all(before <= after for before, after in itertools.pairwise(values))
