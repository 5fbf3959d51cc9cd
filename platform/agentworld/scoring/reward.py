"""The reward of a world model's answer: rubric, rule and embedding, weighted by a recipe.

Evaluations report with the same code. The scale is 0 to 25, as in Qwen-AgentWorld, section 3.4.1.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from agentworld.domains.base import Domain, verdict_of
from agentworld.domains.rubric import RubricScore
from agentworld.errors import InputError, JudgeError
from agentworld.recipes.reward import RewardRecipe
from agentworld.records.endpoint_usage import EndpointUsage
from agentworld.records.message import Message
from agentworld.rendering.parse import parse_observation
from agentworld.scoring.answers import Answer, AnswerStore
from agentworld.scoring.embedding import EmbeddingReward
from agentworld.scoring.endpoint import EndpointClient
from agentworld.scoring.holes import HoleLimit
from agentworld.scoring.judge import EndpointJudge
from agentworld.scoring.prices import usage_of

FULL = 25.0

Score = Callable[[Domain, str, str, Sequence[Message]], RubricScore]
"""Scores a prediction against the truth, after these messages; may raise JudgeError."""


class Prediction(NamedTuple):
    """A world model's answer, and the true observation after these messages."""

    domain: Domain
    text: str
    truth: str
    messages: Sequence[Message]


class _Part(NamedTuple):
    """One kind of reward with its weight."""

    reward: float
    weight: float


class Rewarder:
    """Rewards answers; `score` replaces the recipe's rubric.

    Questions whose answers are in `answers` are not sent to the judge.
    """

    def __init__(
        self,
        recipe: RewardRecipe,
        score: Score | None = None,
        *,
        answers: AnswerStore | None = None,
    ) -> None:
        _check_weights(recipe)
        self._recipe = recipe
        self._is_judged = recipe.rubric == "endpoint"
        self._bill: list[Answer] = []
        self._holes = HoleLimit("answers")
        self._score_rubric = score or (
            self._open_judge(answers) if self._is_judged else _score_by_rules
        )
        self._embedding = _load_embedding(recipe)

    def score_all(self, predictions: Sequence[Prediction]) -> list[float | None]:
        """The scores of many answers; a judge is asked about several at once.

        Equal observations of a group are scored once.
        """
        keys = [_key_of(prediction) for prediction in predictions]
        different = dict(zip(keys, predictions, strict=True))
        num_threads = self._recipe.endpoint.concurrency if self._is_judged else 1
        with ThreadPoolExecutor(num_threads) as pool:
            rewards = pool.map(lambda prediction: self.score(*prediction), different.values())
            reward_of = dict(zip(different, rewards, strict=True))
        return [reward_of[key] for key in keys]

    def take_usage(self) -> EndpointUsage | None:
        """The judge's usage since the last call; null without a judge."""
        if not self._is_judged:
            return None
        usage = usage_of(self._recipe.endpoint, self._bill)
        self._bill.clear()
        return usage

    def score(
        self, domain: Domain, text: str, truth: str, messages: Sequence[Message] = ()
    ) -> float | None:
        """0 to 25, or null if a judge gave no verdict.

        An answer without an observation is the model's own failure and gets 0. A failed judge is
        our failure: the sample is a hole and must not count. Raises JudgeError if half of the
        verdicts are missing.
        """
        predicted = parse_observation(text)
        if predicted is None:
            return 0.0
        try:
            parts = list(self._parts(domain, predicted, truth, messages))
        except JudgeError as error:
            self._holes.add(str(error))
            return None
        self._holes.add(None)
        weight = sum(part.weight for part in parts)
        return sum(part.reward * part.weight for part in parts) / weight if weight else None

    def _open_judge(self, answers: AnswerStore | None) -> Score:
        client = EndpointClient(self._recipe.endpoint, "judge", answers=answers)
        return EndpointJudge(client.billed_to(self._bill)).score

    def _parts(
        self, domain: Domain, predicted: str, truth: str, messages: Sequence[Message]
    ) -> Iterator[_Part]:
        recipe = self._recipe
        if recipe.rubric_weight:
            score = self._score_rubric(domain, predicted, truth, messages)
            yield _Part(score.reward, recipe.rubric_weight)
        # without a verdict of the rule, the other parts get its weight
        verdict = verdict_of(domain, predicted, truth)
        if recipe.rule_weight and verdict is not None:
            yield _Part(FULL * verdict, recipe.rule_weight)
        if self._embedding:
            hit = self._embedding.is_hit(predicted, truth)
            yield _Part(FULL * hit, recipe.embedding_weight)


def _score_by_rules(
    domain: Domain, predicted: str, truth: str, _messages: Sequence[Message]
) -> RubricScore:
    return domain.rubric.score_by_rules(predicted, truth)


def _key_of(prediction: Prediction) -> tuple[str, str | None, str, str]:
    """Equal for answers with the same observation at the same turn, whatever their thoughts."""
    domain, text, truth, messages = prediction
    return domain.name, parse_observation(text), truth, str(messages)


def _load_embedding(recipe: RewardRecipe) -> EmbeddingReward | None:
    if not recipe.embedding_weight:
        return None
    if recipe.embedding_model is None:
        raise InputError(
            f"embedding_weight is {recipe.embedding_weight} but embedding_model is not set"
        )
    return EmbeddingReward(Path(recipe.embedding_model), recipe.embedding_distance)


def _check_weights(recipe: RewardRecipe) -> None:
    weights = (recipe.rubric_weight, recipe.rule_weight, recipe.embedding_weight)
    if min(weights) < 0 or not any(weights):
        raise InputError(f"the reward's weights {weights} must not be negative, and not all be 0")
