"""Steps of several parts: what a killed step had finished is not done again."""

import itertools

import pytest

from agentworld.errors import EngineError
from agentworld.evaluate.world import ScoredWorld
from agentworld.recipes.serve import EvaluateRecipe
from agentworld.runner.folders import reuse_or_train
from make import records

pytestmark = pytest.mark.waits  # torch and MLflow stand behind these steps


SCORED = ScoredWorld(score=records.world_score(), exact=((True, None), (False,)))


def test_a_finished_training_is_not_repeated(tmp_path):
    made = records.checkpoint("imitation")
    made.write(tmp_path / "checkpoint.json")
    assert reuse_or_train(tmp_path, lambda: pytest.fail("trained again")) == made


@pytest.mark.parametrize("at_once", [1, 2])
def test_finished_scores_are_not_computed_again(tmp_path, at_once):
    from agentworld.steps.evaluate import _run_all

    asked = []

    def scorer(name):
        def score(_tick):
            asked.append(name)
            if name == "sft" and asked.count("sft") == 1:
                raise EngineError("gone")
            return SCORED

        return score

    scorers = {name: scorer(name) for name in ("copy", "cpt", "sft")}
    with pytest.raises(EngineError):
        _run_all(scorers, EvaluateRecipe(at_once=at_once), tmp_path, lambda *_: None)
    assert set(
        _run_all(scorers, EvaluateRecipe(at_once=at_once), tmp_path, lambda *_: None)
    ) == set(scorers)
    assert sorted(asked) == ["copy", "cpt", "sft", "sft"]


@pytest.mark.parametrize("at_once", [1, 2])
def test_the_progress_of_several_scores_never_decreases(tmp_path, at_once):
    from agentworld.steps.evaluate import _run_all

    told = []

    def score(tick):
        tick(1, 2)
        tick(2, 2)
        return SCORED

    scorers = {"copy": score, "cpt": score}
    _run_all(scorers, EvaluateRecipe(at_once=at_once), tmp_path, lambda n, _: told.append(n))
    assert told == [250, 500, 750, 1000]
    assert all(before <= after for before, after in itertools.pairwise(told))
