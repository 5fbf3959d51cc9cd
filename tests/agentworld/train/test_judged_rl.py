"""RL with rewards from a judge behind an endpoint."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from agentworld.errors import InputError
from agentworld.records.checkpoint import ArtifactManifest, Checkpoint
from agentworld.records.endpoint_usage import EndpointUsage
from agentworld.runner.folders import checkpoint_of, model_of
from agentworld.steps.run import run_by_name
from agentworld.storage.step_figures import read_figures
from fakes.endpoint import Request
from make import records, tracing, training
from make.tracing import verdict

if TYPE_CHECKING:
    from agentworld.train.model import LanguageModel

pytestmark = pytest.mark.compute

STEPS = 4
NO_VERDICT = "I would rather not"


class Rl(NamedTuple):
    """A store with all that the step `rl` reads, and a recipe with a judge."""

    words: training.Training
    parent: str

    def run(self, url: str) -> Path:
        """Runs the step with the judge at this address; returns its folder."""
        recipe = Path(self.words.recipe)
        text = recipe.read_text()
        recipe.write_text(text.replace("JUDGE", url))
        try:
            return Path(run_by_name("rl", *self.words, self.parent))
        finally:
            recipe.write_text(text)


@pytest.fixture
def rl(language_model: LanguageModel, tmp_path: Path) -> Callable[..., Rl]:
    """Makes a store with this name; all stores begin with the same weights."""

    def make(name: str, num_steps: int = STEPS) -> Rl:
        judge = {"url": "JUDGE", "model": tracing.JUDGE, "concurrency": 2}
        reward = {"rubric": "endpoint", "endpoint": judge, "rubric_weight": 1, "rule_weight": 0}
        fields = {
            "num_steps": num_steps,
            "checkpoint_every": 2,
            "max_tokens": 6,
            "learning_rate": 1e-3,
        }
        inputs = training.training(tmp_path / name, rl={**fields, "reward": reward})
        parent = records.finished_step(Path(inputs.store), "sft", records.digest("parent"))
        language_model.save(model_of(parent))
        artifact = ArtifactManifest.of(model_of(parent)).digest
        records.checkpoint("sft", artifact=artifact).write(parent / "checkpoint.json")
        return Rl(inputs, str(parent))

    return make


def folder_of(setup: Rl) -> Path:
    """The only folder of the step."""
    steps = (Path(setup.words.store) / "steps/rl").iterdir()
    (folder,) = (path for path in steps if path.is_dir())
    return folder


def verdict_by_length(request: Request) -> str:
    """A verdict that depends only on the question."""
    return verdict(1 + len(tracing.question_of(request)) % 5)


def questions(requests: list[Request]) -> list[str]:
    return [tracing.question_of(request) for request in requests]


def test_a_resumed_training_requests_only_missing_verdicts_and_counts_all_answers(
    rl: Callable[..., Rl],
) -> None:
    with tracing.endpoints(judge=verdict_by_length) as server:
        expected_folder = rl("whole").run(server.url)
    all_questions = questions(server.requests)
    assert len(set(all_questions)) == len(all_questions) > STEPS
    numbers, answered_questions = count(), list[str]()
    limit = len(all_questions) - 2  # in the last step, after the checkpoint of the second one

    def fail_late(request: Request) -> str | int:
        if next(numbers) >= limit:
            return 401
        answered_questions.append(tracing.question_of(request))
        return verdict_by_length(request)

    setup = rl("killed")
    with (
        tracing.endpoints(judge=fail_late) as first,
        pytest.raises(InputError, match="status 401.*correct the recipe's endpoint"),
    ):
        setup.run(first.url)
    with tracing.endpoints(judge=verdict_by_length) as second:
        resumed_folder = setup.run(second.url)
    assert sorted([*answered_questions, *questions(second.requests)]) == sorted(all_questions)
    checkpoints: list[Checkpoint] = [
        checkpoint_of(folder) for folder in (expected_folder, resumed_folder)
    ]
    assert checkpoints[0].artifact == checkpoints[1].artifact
    assert checkpoints[0].metrics == checkpoints[1].metrics
    metrics = checkpoints[0].metrics
    assert (metrics["holes"], metrics["judge_answers"]) == (0, len(all_questions))
    assert (metrics["judge_prompt_tokens"], metrics["judge_tokens"]) == (
        *(3 * len(all_questions), len(all_questions)),
    )
    assert "judge_dollars" not in metrics  # it is unknown, and not 0


def test_reward_figures_average_over_processes_to_their_totals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from agentworld.train.reward_figures import reward_figures

    monkeypatch.setattr("agentworld.train.reward_figures.num_ranks", lambda: 2)
    usage = EndpointUsage(num_answers=3, num_prompt_tokens=9, num_tokens=3, dollars="0.5")
    assert reward_figures([None, 5.0, None], usage) == {
        "holes": 4,
        "judge_answers": 6,
        "judge_prompt_tokens": 18,
        "judge_tokens": 6,
        "judge_dollars": 1.0,
    }
    assert reward_figures([5.0], None) == {"holes": 0}


def test_a_training_with_a_step_of_unknown_price_has_no_price() -> None:
    from agentworld.train.reward_figures import reward_totals

    logs = [{"holes": 1.0, "judge_dollars": 0.5}, {"epoch": 1.0}]
    assert reward_totals(logs) == {"holes": 1, "judge_dollars": 0.5}
    assert reward_totals([*logs, {"holes": 2.0, "judge_dollars": None}]) == {"holes": 3}


def test_an_answer_without_a_verdict_counts_as_a_hole_and_not_as_reward_0(
    rl: Callable[..., Rl],
) -> None:
    asked_questions: list[str] = []

    def judge(request: Request) -> str:
        """Gives no verdict on the first question."""
        question = tracing.question_of(request)
        asked_questions.append(question)
        return NO_VERDICT if question == asked_questions[0] else verdict(3)

    with tracing.endpoints(judge=judge) as server:
        folder = rl("store").run(server.url)
    metrics = checkpoint_of(folder).metrics
    # Three requests were made for a verdict that never came.
    assert metrics["judge_answers"] == len(server.requests) == len(set(asked_questions)) + 2
    assert metrics["holes"] >= 1
    figures = read_figures(folder)
    assert sum(step["holes"] for step in figures.values()) == metrics["holes"]
    rewards = {step["reward"] for step in figures.values() if "reward" in step}
    assert rewards == {15.0}


def test_a_training_without_any_verdict_fails_and_leaves_the_weights_unchanged(
    rl: Callable[..., Rl],
) -> None:
    setup = rl("store", num_steps=3)  # with more, half of the last 40 verdicts would be missing
    with (
        tracing.endpoints(judge=lambda _: NO_VERDICT) as server,
        pytest.raises(InputError, match="no answer got a reward.*then remove .*run this again"),
    ):
        setup.run(server.url)
    folder = folder_of(setup)
    figures = read_figures(folder)
    assert [(step["holes"], "reward" in step) for step in figures.values()] == [(6, False)] * 3
    (last_checkpoint, *_) = sorted((folder / "checkpoints").glob("checkpoint-*"), reverse=True)
    weights = (
        path / "model.safetensors" for path in (model_of(Path(setup.parent)), last_checkpoint)
    )
    before, after = (path.read_bytes() for path in weights)
    assert before == after
