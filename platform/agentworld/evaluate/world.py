"""The accuracy of a world model's predictions of live episodes.

Teacher-forced: every target is predicted from the recorded history, as in the paper. Free-running:
the history contains the model's own observations, as in a simulator.
"""

import asyncio
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from agentworld.domains.base import domain_of
from agentworld.engine.base import Engine
from agentworld.errors import EngineError, InputError
from agentworld.evaluate.bootstrap import Values, estimate
from agentworld.evaluate.guesses import write_guesses
from agentworld.evaluate.judging import (
    Episodes,
    Judge,
    JudgedTurn,
    TurnFilter,
    answers_of,
    exact,
    free_run,
    has_domain,
    has_kind,
    has_tag,
    is_any,
    is_no_read_of_start,
    judged_targets,
    kinds_of,
    tags_of,
    values_of,
)
from agentworld.evaluate.predict import Predictor
from agentworld.recipes.serve import EvaluateRecipe
from agentworld.records.base import Record
from agentworld.records.progress import OnProgress
from agentworld.records.report import Estimate, Figures, WorldModelScore
from agentworld.records.sample import Sample
from agentworld.records.simulator import Sampling

GREEDY = Sampling(temperature=0.0)


class ScoredWorld(Record):
    """A predictor's score, and its verdicts, by which it is compared with others."""

    score: WorldModelScore
    exact: tuple[tuple[bool | None, ...], ...]
    """By episode, whether each target turn was exactly right; null is a hole."""
    values: dict[str, tuple[tuple[float | None, ...], ...]] = {}
    """The values of the other metrics."""


async def evaluate_world(
    predict: Engine,
    samples: Sequence[Sample],
    recipe: EvaluateRecipe,
    on_progress: OnProgress,
    sampling: Sampling = GREEDY,
    guesses_path: Path | None = None,
) -> ScoredWorld:
    """Scores a predictor on held-out episodes, and writes its answers to `guesses_path`.

    An answer that is truncated or has no observation is the model's own failure and wrong. An
    engine's failure is ours: the turn is a hole, left out and counted. Raises EngineError if no
    turn was answered, and InputError if there is no turn to score.
    """
    selection = choose(samples, recipe.num_episodes, recipe.seed)
    free_samples = selection[: recipe.num_free_running]
    num_targets = sum(len(sample.targets) for sample in selection)
    num_rolled = sum(len(sample.turns) for sample in free_samples)
    predictor = Predictor(predict, sampling, on_progress, num_targets + num_rolled)
    judge = Judge(recipe.metrics, recipe.embedding_model)
    judged_episodes = await asyncio.gather(
        *(_teacher_forced(judge, predictor, sample) for sample in selection)
    )
    if all(turn.exact is None for episode in judged_episodes for turn in episode):
        raise EngineError(f"the engine answered none of {num_targets} turns: {predictor.problem}")
    free = await asyncio.gather(
        *(_free_running(judge, predictor, sample) for sample in free_samples)
    )
    if guesses_path:
        write_guesses(
            guesses_path, [[turn.guess for turn in episode] for episode in judged_episodes]
        )
    return ScoredWorld(
        score=_summary(judged_episodes, free, recipe),
        exact=tuple(tuple(turn.exact for turn in episode) for episode in judged_episodes),
        values=metric_values(judged_episodes),
    )


def metric_values(episodes: Episodes) -> dict[str, tuple[tuple[float | None, ...], ...]]:
    """By metric and by episode, its values; a metric without any value is left out."""
    return {name: tuple(map(tuple, values)) for name, values in values_of(episodes, is_any).items()}


def choose(samples: Sequence[Sample], num: int, seed: int) -> list[Sample]:
    """So many of the samples, or all; always the same for a seed."""
    return random.Random(f"evaluate {seed}").sample(samples, min(num, len(samples)))


async def _teacher_forced(judge: Judge, predictor: Predictor, sample: Sample) -> list[JudgedTurn]:
    turns = sample.turns
    predictions = await asyncio.gather(
        *(
            predictor.predict(sample.prompt, turns[:index], turns[index].action)
            for index in sample.targets
        )
    )
    guesses = zip(sample.targets, predictions, strict=True)
    domain = domain_of(sample.domain)
    return [judge.judge(domain, turns[index], guess) for index, guess in guesses]


async def _free_running(judge: Judge, predictor: Predictor, sample: Sample) -> list[JudgedTurn]:
    ask = partial(predictor.predict, sample.prompt)
    domain = domain_of(sample.domain)
    return await free_run(judge, domain, sample.turns, ask, judges_blank=False)


def grouped_figures(episodes: Episodes, recipe: EvaluateRecipe) -> dict[str, object]:
    """The fields of a score with every metric: over all turns, by kind and by domain."""

    def group(turn_filter: TurnFilter) -> Figures:
        metrics = values_of(episodes, turn_filter).items()
        return Figures(
            exact_match=_estimate(exact(episodes, turn_filter), recipe),
            metrics={name: _estimate(values, recipe) for name, values in metrics},
        )

    targets = judged_targets(episodes)
    domains = sorted({target.domain for target in targets})
    return {
        **dict(group(is_any)),
        "by_kind": {kind: group(has_kind(kind)) for kind in kinds_of(targets)},
        "by_domain": {name: group(has_domain(name)) for name in domains if len(domains) > 1},
    }


def _summary(episodes: Episodes, free: Episodes, recipe: EvaluateRecipe) -> WorldModelScore:
    def of(values: Values) -> Estimate:
        return _estimate(values, recipe)

    targets = judged_targets(episodes)
    remaining = any(map(is_no_read_of_start, targets))
    return WorldModelScore.model_validate(
        {
            **grouped_figures(episodes, recipe),
            "by_tag": {tag: of(exact(episodes, has_tag(tag))) for tag in tags_of(targets)},
            "without_start": of(exact(episodes, is_no_read_of_start)) if remaining else None,
            "free_running": of(exact(free, is_any)) if any(free) else None,
            "answers": answers_of(episodes),
        }
    )


def _estimate(values: Values, recipe: EvaluateRecipe) -> Estimate:
    if all(value is None for episode in values for value in episode):
        raise InputError(
            "no held-out turn at all got a verdict; raise num_episodes, or look at the engine"
        )
    return estimate(values, recipe.num_resamples, recipe.seed)
