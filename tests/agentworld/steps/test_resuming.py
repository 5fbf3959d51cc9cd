"""Steps of several parts: what a killed step had finished is not done again."""

import asyncio
import itertools

import pytest

import make
from agentworld.errors import EngineError
from agentworld.records.run import AgentRun, RunOpening

pytestmark = pytest.mark.slow  # torch and MLflow stand behind these steps


class Service:
    """A simulator's runs, as a client meets them."""

    def __init__(self) -> None:
        self.runs: dict[str, AgentRun] = {}

    async def open_run(self, opening: RunOpening) -> AgentRun:
        run = AgentRun(id=f"run-{len(self.runs)}", opening=opening, simulator=make.digest("s"))
        self.runs[run.id] = run
        return run

    async def resume_run(self, run: str) -> AgentRun:
        return self.runs[run]


def test_a_killed_agent_step_continues_its_run(tmp_path):
    from agentworld.steps.agent import _open_run

    service, untrained = Service(), make.checkpoint("imitation")
    first = asyncio.run(_open_run(service, "terminal-agent", untrained, tmp_path))
    again = asyncio.run(_open_run(service, "terminal-agent", untrained, tmp_path))
    assert again == first
    assert len(service.runs) == 1
    assert first.opening.starting_weights == untrained.artifact


def test_a_training_that_was_finished_is_not_repeated(tmp_path):
    from agentworld.steps.agent import _once

    made = make.checkpoint("imitation")
    made.write(tmp_path / "checkpoint.json")
    assert _once(tmp_path, lambda: pytest.fail("trained again")) == made


@pytest.mark.parametrize("at_once", [1, 2])
def test_scores_that_were_finished_are_read(tmp_path, at_once):
    from agentworld.steps.evaluate import _run_all

    asked = []

    def scorer(name):
        def score(_tick):
            asked.append(name)
            if name == "sft" and asked.count("sft") == 1:
                raise EngineError("gone")
            return make.world_score()

        return score

    scorers = {name: scorer(name) for name in ("copy", "cpt", "sft")}
    with pytest.raises(EngineError):
        _run_all(scorers, at_once, tmp_path, lambda *_: None)
    assert set(_run_all(scorers, at_once, tmp_path, lambda *_: None)) == set(scorers)
    assert sorted(asked) == ["copy", "cpt", "sft", "sft"]


@pytest.mark.parametrize("at_once", [1, 2])
def test_the_bar_of_several_scores_never_goes_back(tmp_path, at_once):
    from agentworld.steps.evaluate import _run_all

    told = []

    def score(tick):
        tick(1, 2)
        tick(2, 2)
        return make.world_score()

    _run_all({"copy": score, "cpt": score}, at_once, tmp_path, lambda n, _: told.append(n))
    assert told == [250, 500, 750, 1000]
    assert all(before <= after for before, after in itertools.pairwise(told))
