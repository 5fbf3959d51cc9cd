"""A judge's scores as metrics, with a scripted local endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from agentworld.domains.base import domain_of
from agentworld.domains.rubric import RubricScore
from agentworld.engine.fake import Answer, FakeEngine
from agentworld.errors import EngineError, JudgeError
from agentworld.evaluate.compare import Comparison
from agentworld.evaluate.guesses import read_guesses, write_guesses
from agentworld.evaluate.rubric import JUDGE_METRICS, RubricScorer, values_of_score
from agentworld.evaluate.world import ScoredWorld, evaluate_world
from agentworld.recipes.endpoint import EndpointRecipe
from agentworld.recipes.reward import RewardRecipe
from agentworld.recipes.serve import EvaluateRecipe
from agentworld.records.endpoint_usage import JudgeUse
from agentworld.records.message import Message
from agentworld.records.progress import ignore_progress
from agentworld.rendering.messages import world_messages
from agentworld.scoring.answers import AnswerStore
from fakes import endpoint
from fakes.endpoint import Request
from make import records, tracing
from make.tracing import verdict

RECIPE = EvaluateRecipe(num_episodes=10, num_free_running=0, num_resamples=100)
SAMPLES = [records.sample(seed, num_turns=4) for seed in range(4)]
"""The second of each two turns is a read."""
TRUTHS = {turn.action: turn.observation for sample in SAMPLES for turn in sample.turns}
NUM_TURNS = 16

Judge = Callable[[Request], str | int]


def predictor(answer_to_reads: str | EngineError) -> Callable[[Sequence[Message]], Answer]:
    """A predictor that is right about writes, and gives this answer to reads."""

    def respond(messages: Sequence[Message]) -> Answer:
        action = messages[-1]["content"]
        return answer_to_reads if action.startswith("cat") else TRUTHS[action]

    return respond


def approve_truth(request: Request) -> str:
    """A judge with full scores for the truth, and 2 of 5 for anything else."""
    _, _, texts = tracing.question_of(request).partition("## Prediction\n```\n")
    prediction, _, truth = texts.partition("\n```\n\n## Truth\n```\n")
    return verdict(5 if f"{prediction}\n```" == truth else 2)


def predict(
    folder: Path, answer_to_reads: str | EngineError = "wrong\n[0] ~", name: str = "rl"
) -> ScoredWorld:
    """A predictor's verdicts; its answers are in a file."""
    engine = FakeEngine(predictor(answer_to_reads))
    evaluation = evaluate_world(
        engine, SAMPLES, RECIPE, ignore_progress, guesses_path=folder / f"{name}.json"
    )
    return asyncio.run(evaluation)


def run_judge(
    folder: Path, judge: Judge, world: ScoredWorld, name: str = "rl"
) -> tuple[ScoredWorld, JudgeUse, list[Request]]:
    """The predictor with the judge's scores, the judge's usage, and its requests."""
    with endpoint.running(judge) as server:
        recipe = EndpointRecipe(url=server.url, model="judge", concurrency=2)
        answers = AnswerStore(folder / "answers")
        with closing(RubricScorer(recipe, SAMPLES, RECIPE, answers, pause_seconds=0.0)) as scorer:
            guesses = read_guesses(folder / f"{name}.json")
            scored_world = scorer.add_scores(name, world, guesses, ignore_progress)
            return scored_world, scorer.use, server.requests


def test_judge_scores_from_1_to_5_are_scaled_to_0_to_1_and_0_is_missing() -> None:
    values = values_of_score(RubricScore(5, 3, 1, 0, 5))
    assert values == {
        "judge": pytest.approx(0.625),  # 3.5 of 5
        "judge_format": 1.0,
        "judge_factuality": 0.5,
        "judge_consistency": 0.0,
        "judge_realism": None,
        "judge_quality": 1.0,
    }
    assert tuple(values) == JUDGE_METRICS


@pytest.mark.compute
def test_the_judges_scores_are_added_as_metrics_with_intervals_and_by_kind(
    tmp_path: Path,
) -> None:
    prior_world = predict(tmp_path)
    world, use, requests = run_judge(tmp_path, approve_truth, prior_world)
    score = world.score
    for name in JUDGE_METRICS:
        metric = score.metrics[name]
        assert (metric.mean, metric.num, metric.holes) == (0.625, NUM_TURNS, 0)
        assert metric.low <= metric.mean <= metric.high
        assert score.by_kind["write"].metrics[name].mean == 1
        assert score.by_kind["read"].metrics[name].mean == 0.25
    assert (use.num, use.holes, use.models) == (NUM_TURNS, 0, ("judge",))
    assert use.usage.num_answers == len(requests) == NUM_TURNS
    other_metrics = {name: score.metrics[name] for name in prior_world.score.metrics}
    assert other_metrics == prior_world.score.metrics
    assert score.exact_match == prior_world.score.exact_match
    assert (score.by_tag, score.answers) == (prior_world.score.by_tag, prior_world.score.answers)


@pytest.mark.compute
def test_a_lead_contains_the_judges_scores(tmp_path: Path) -> None:
    poor, good = predict(tmp_path, name="copy"), predict(tmp_path, "[0] ~", name="rl")
    worlds = {}
    for name, world in {"copy": poor, "rl": good}.items():
        judge = approve_truth if name == "copy" else lambda _: verdict(5)
        worlds[name], _, _ = run_judge(tmp_path, judge, world, name)
    lead = Comparison(SAMPLES, RECIPE).leads(worlds["rl"], {"copy": worlds["copy"]})["copy"]
    # Both predictors share their verdicts on writes, since their answers to these are equal.
    assert lead.metrics["judge"].mean == pytest.approx(0.375)


@pytest.mark.compute
@pytest.mark.parametrize("reply", ["I would rather not", 400])
def test_a_missing_verdict_is_a_hole_and_no_failure(tmp_path: Path, reply: str | int) -> None:
    first_action = f"## Action\n```\n{SAMPLES[0].turns[1].action}\n```"

    def judge(request: Request) -> str | int:
        return reply if first_action in tracing.question_of(request) else approve_truth(request)

    world, use, _ = run_judge(tmp_path, judge, predict(tmp_path))
    metric = world.score.metrics["judge"]
    assert (metric.num, metric.holes) == (NUM_TURNS - 1, 1)
    assert metric.mean == pytest.approx((8 + 7 * 0.25) / 15)
    assert (use.num, use.holes) == (NUM_TURNS, 1)
    assert world.score.exact_match.holes == 0


def test_a_cut_off_answer_scores_zero_without_asking_the_judge(tmp_path: Path) -> None:
    cut_off = EngineError("too long", kind="cut-off")
    world, use, requests = run_judge(tmp_path, approve_truth, predict(tmp_path, cut_off))
    metric = world.score.metrics["judge"]
    assert (metric.mean, metric.num, metric.holes) == (0.5, NUM_TURNS, 0)
    assert use.num == len(requests) == NUM_TURNS // 2


def test_an_unanswered_turn_is_a_hole_and_the_judge_is_not_asked(
    tmp_path: Path,
) -> None:
    world, use, requests = run_judge(
        tmp_path, approve_truth, predict(tmp_path, EngineError("gone"))
    )
    metric = world.score.metrics["judge"]
    assert (metric.mean, metric.num, metric.holes) == (1, NUM_TURNS // 2, NUM_TURNS // 2)
    assert (use.num, use.holes, len(requests)) == (NUM_TURNS // 2, 0, NUM_TURNS // 2)


@pytest.mark.compute
def test_half_of_the_verdicts_missing_raises_and_a_retry_asks_only_for_the_rest(
    tmp_path: Path,
) -> None:
    world = predict(tmp_path)

    def judge_writes(request: Request) -> str | int:
        return 400 if "## Action\n```\ncat" in tracing.question_of(request) else verdict(5)

    with pytest.raises(
        JudgeError, match="8 of 16 predictions of rl have no verdict.*run this again"
    ):
        run_judge(tmp_path, judge_writes, world)
    scored_world, use, requests = run_judge(tmp_path, approve_truth, world)
    assert scored_world.score.metrics["judge"].num == NUM_TURNS
    assert len(requests) == NUM_TURNS // 2
    assert use.usage.num_answers == NUM_TURNS


@pytest.mark.compute
def test_a_verdict_from_rl_is_reused_without_another_request(tmp_path: Path) -> None:
    from agentworld.scoring.reward import Prediction, Rewarder

    predictions = [
        Prediction(
            domain_of(sample.domain),
            "wrong\n[0] ~" if turn.action.startswith("cat") else turn.observation,
            turn.observation,
            world_messages(sample.prompt, sample.turns[:index], turn.action),
        )
        for sample in SAMPLES
        for index, turn in enumerate(sample.turns)
    ]
    with endpoint.running(approve_truth) as server:
        recipe = RewardRecipe(
            rubric="endpoint",
            rubric_weight=1,
            rule_weight=0,
            endpoint=EndpointRecipe(url=server.url, model="judge"),
        )
        Rewarder(recipe, answers=AnswerStore(tmp_path / "answers")).score_all(predictions)
        assert len(server.requests) == NUM_TURNS
    world, _, requests = run_judge(tmp_path, approve_truth, predict(tmp_path))
    assert requests == []
    assert world.score.metrics["judge"].mean == 0.625


def test_a_lone_surrogate_in_a_prediction_is_stored_unchanged(tmp_path: Path) -> None:
    guesses = [["half-\ud800", None, ""], []]
    write_guesses(tmp_path / "folder/rl.json", guesses)
    assert read_guesses(tmp_path / "folder/rl.json") == guesses
