"""The reward of a world model's answer: rubric, rule and embedding, mixed by a recipe's weights.

The code that rewards here is the code that reports in an evaluation. The scale is the
paper's, 0 to 25 (Qwen-AgentWorld section 3.4.1).
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from agentworld.domains.base import Domain, verdict_of
from agentworld.domains.rubric import RubricScore
from agentworld.errors import InputError, JudgeError
from agentworld.recipes.train import RewardRecipe
from agentworld.records.message import Message
from agentworld.rendering.parse import parse_observation
from agentworld.scoring.embedding import EmbeddingReward
from agentworld.scoring.endpoint import EndpointClient
from agentworld.scoring.judge import EndpointJudge

FULL = 25.0

Score = Callable[[Domain, str, str, Sequence[Message]], RubricScore]
"""Scores a prediction against the truth, after these messages; may raise JudgeError."""


class Prediction(NamedTuple):
    """What a world model said, and what it should have shown after these messages."""

    domain: Domain
    text: str
    truth: str
    messages: Sequence[Message]


class _Part(NamedTuple):
    """One kind of reward and what it weighs."""

    reward: float
    weight: float


class Rewarder:
    """Rewards what a model said; a `score` replaces the recipe's own rubric."""

    def __init__(self, recipe: RewardRecipe, score: Score | None = None) -> None:
        _check_weights(recipe)
        self._recipe = recipe
        self._num_threads = recipe.endpoint.concurrency if recipe.rubric == "endpoint" else 1
        self._score_rubric = score or _RUBRICS[recipe.rubric](recipe)
        self._embedding = _load_embedding(recipe)

    def score_all(self, predictions: Sequence[Prediction]) -> list[float | None]:
        """The scores of many answers, as `score` has them; a judge is asked for several at once."""
        with ThreadPoolExecutor(self._num_threads) as pool:
            return list(pool.map(lambda prediction: self.score(*prediction), predictions))

    def score(
        self, domain: Domain, text: str, truth: str, messages: Sequence[Message] = ()
    ) -> float | None:
        """0 to 25, or null where a judge gave no verdict.

        An answer without an observation is the model's own failure and is worth 0. A judge
        that fails is ours: the sample is a hole and must not count.
        """
        predicted = parse_observation(text)
        if predicted is None:
            return 0.0
        try:
            parts = list(self._parts(domain, predicted, truth, messages))
        except JudgeError:
            return None
        weight = sum(part.weight for part in parts)
        return sum(part.reward * part.weight for part in parts) / weight if weight else None

    def _parts(
        self, domain: Domain, predicted: str, truth: str, messages: Sequence[Message]
    ) -> Iterator[_Part]:
        recipe = self._recipe
        if recipe.rubric_weight:
            score = self._score_rubric(domain, predicted, truth, messages)
            yield _Part(score.reward, recipe.rubric_weight)
        # Without a verdict of the rule the other parts take its weight.
        verdict = verdict_of(domain, predicted, truth)
        if recipe.rule_weight and verdict is not None:
            yield _Part(FULL * verdict, recipe.rule_weight)
        if self._embedding:
            hit = self._embedding.is_hit(predicted, truth)
            yield _Part(FULL * hit, recipe.embedding_weight)


def _rules(_recipe: RewardRecipe) -> Score:
    return lambda domain, predicted, truth, _messages: domain.rubric.score_by_rules(
        predicted, truth
    )


def _endpoint(recipe: RewardRecipe) -> Score:
    return EndpointJudge(EndpointClient(recipe.endpoint, "judge")).score


_RUBRICS: dict[str, Callable[[RewardRecipe], Score]] = {"rules": _rules, "endpoint": _endpoint}


def _load_embedding(recipe: RewardRecipe) -> EmbeddingReward | None:
    if not recipe.embedding_weight:
        return None
    if recipe.embedding_model is None:
        raise InputError(
            f"embedding_weight is {recipe.embedding_weight} but embedding_model names no folder"
        )
    return EmbeddingReward(Path(recipe.embedding_model), recipe.embedding_distance)


def _check_weights(recipe: RewardRecipe) -> None:
    weights = (recipe.rubric_weight, recipe.rule_weight, recipe.embedding_weight)
    if min(weights) < 0 or not any(weights):
        raise InputError(f"the reward's weights {weights} must not be negative, and not all be 0")
