"""A judge's scores of predictions, as metrics beside the others.

Qwen-AgentWorld section 4.2: a judge sees the history, the action, the prediction and the truth, and
scores five dimensions from 1 to 5. The total is the mean of the dimensions with a score. As in the
paper's code, 1 maps to 0 and 5 to 1.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from agentworld.domains.base import domain_of
from agentworld.domains.rubric import BEST, RubricScore
from agentworld.errors import JudgeError
from agentworld.evaluate.guesses import Guesses
from agentworld.evaluate.judging import JudgedTurn, targets_of
from agentworld.evaluate.predict import NOTHING
from agentworld.evaluate.world import ScoredWorld, choose, grouped_figures, metric_values
from agentworld.recipes.endpoint import EndpointRecipe
from agentworld.recipes.serve import EvaluateRecipe
from agentworld.records.endpoint_usage import JudgeUse
from agentworld.records.progress import OnProgress
from agentworld.records.sample import Sample
from agentworld.rendering.messages import world_messages
from agentworld.scoring.answers import Answer, AnswerStore
from agentworld.scoring.endpoint import EndpointClient
from agentworld.scoring.holes import HoleLimit
from agentworld.scoring.judge import EndpointJudge
from agentworld.scoring.prices import usage_of

JUDGE = "judge"
"""The metric of all dimensions; each dimension has its own, such as `judge_factuality`."""
JUDGE_METRICS = (JUDGE, *(f"{JUDGE}_{name}" for name in RubricScore._fields))

Values = Mapping[str, float | None]
_HOLE: Values = dict.fromkeys(JUDGE_METRICS)
_WRONG: Values = dict.fromkeys(JUDGE_METRICS, 0.0)


class _Question(NamedTuple):
    """A prediction of a turn."""

    sample: Sample
    turn: int
    guess: str | None


class RubricScorer:
    """Sends predictions of the samples that a recipe selects to a judge."""

    def __init__(
        self,
        endpoint: EndpointRecipe,
        samples: Sequence[Sample],
        recipe: EvaluateRecipe,
        answers: AnswerStore,
        *,
        pause_seconds: float = 2.0,
    ) -> None:
        self._endpoint = endpoint
        self._recipe = recipe
        self._samples = choose(samples, recipe.num_episodes, recipe.seed)
        self._bill: list[Answer] = []
        client = EndpointClient(endpoint, "judge", answers=answers, pause_seconds=pause_seconds)
        self._judge = EndpointJudge(client.billed_to(self._bill))
        self._num_asked = self._num_holes = 0

    @property
    def use(self) -> JudgeUse:
        """The usage of the judge so far."""
        return JudgeUse(
            models=tuple(sorted({answer.model for answer in self._bill})),
            num=self._num_asked,
            holes=self._num_holes,
            usage=usage_of(self._endpoint, self._bill),
        )

    def add_scores(
        self, name: str, world: ScoredWorld, guesses: Guesses, on_progress: OnProgress
    ) -> ScoredWorld:
        """Adds the judge's metrics to the predictor of this name.

        A failed answer of the predictor is wrong, and the judge is not asked. A missing verdict is
        a hole. Raises JudgeError if half of the verdicts are missing.
        """
        limit = HoleLimit(f"predictions of {name}")
        verdicts = iter(self._ask_all(list(_questions(self._samples, guesses)), limit, on_progress))
        limit.check()
        self._num_asked += limit.num
        self._num_holes += limit.num_holes
        episodes = [
            [turn._replace(values={**turn.values, **next(verdicts)}) for turn in episode]
            for episode in _turns(self._samples, world)
        ]
        score = world.score.model_copy(update=grouped_figures(episodes, self._recipe))
        return world.model_copy(update={"score": score, "values": metric_values(episodes)})

    def close(self) -> None:
        """Closes the connections."""
        self._judge.close()

    def _ask_all(
        self, questions: Sequence[_Question], limit: HoleLimit, on_progress: OnProgress
    ) -> list[Values]:
        verdicts: list[Values] = []
        with ThreadPoolExecutor(self._endpoint.concurrency) as pool:
            for verdict in pool.map(partial(self._ask, limit), questions):
                verdicts.append(verdict)
                on_progress(len(verdicts), len(questions))
        return verdicts

    def _ask(self, limit: HoleLimit, question: _Question) -> Values:
        sample, index, guess = question
        if guess is None or guess == NOTHING:
            return _HOLE if guess is None else _WRONG
        turn = sample.turns[index]
        messages = world_messages(sample.prompt, sample.turns[:index], turn.action)
        try:
            score = self._judge.score(domain_of(sample.domain), guess, turn.observation, messages)
        except JudgeError as error:
            limit.add(str(error))
            return _HOLE
        limit.add(None)
        return values_of_score(score)


def values_of_score(score: RubricScore) -> Values:
    """The metrics of a verdict; a dimension without a score has no value."""
    dimensions = {f"{JUDGE}_{name}": value for name, value in score._asdict().items()}
    return {
        JUDGE: _share(score.mean),
        **{name: _share(value) if value else None for name, value in dimensions.items()},
    }


def _share(score: float) -> float:
    return (score - 1) / (BEST - 1)


def _questions(samples: Sequence[Sample], guesses: Guesses) -> Iterator[_Question]:
    for sample, episode in zip(samples, guesses, strict=True):
        for turn, guess in zip(sample.targets, episode, strict=True):
            yield _Question(sample, turn, guess)


def _turns(samples: Sequence[Sample], world: ScoredWorld) -> Iterator[list[JudgedTurn]]:
    """By episode, the existing verdicts."""
    for place, sample in enumerate(samples):
        metrics = {name: episodes[place] for name, episodes in world.values.items()}
        yield [
            JudgedTurn(target, is_exact, {name: values[turn] for name, values in metrics.items()})
            for turn, (target, is_exact) in enumerate(
                zip(targets_of(sample), world.exact[place], strict=True)
            )
        ]
