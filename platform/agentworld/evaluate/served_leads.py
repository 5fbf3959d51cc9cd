"""The lead of a served simulator over the baselines that need no training, turn by turn.

The baselines get the live history before each turn, which is more than the simulator gets.
"""

import asyncio
from collections.abc import Sequence

from agentworld.domains.base import domain_of
from agentworld.engine.base import Engine
from agentworld.evaluate.baselines import CopyPrevious, RepeatEarlier
from agentworld.evaluate.bootstrap import Values, estimate_difference
from agentworld.evaluate.judging import Episodes, Judge, JudgedTurn, exact, is_any, values_of
from agentworld.evaluate.predict import Predictor
from agentworld.recipes.serve import NightlyRecipe
from agentworld.records.progress import ignore_progress
from agentworld.records.report import Estimate, Figures
from agentworld.records.sample import Sample
from agentworld.records.simulator import Sampling


def served_leads(
    judge: Judge, samples: Sequence[Sample], served: Episodes, recipe: NightlyRecipe
) -> dict[str, Figures]:
    """By baseline, the lead on these samples."""
    baselines: dict[str, Engine] = {"copy": CopyPrevious(), "repeat": RepeatEarlier()}
    return {
        name: _lead(served, asyncio.run(_judge_samples(judge, engine, samples)), recipe)
        for name, engine in baselines.items()
    }


async def _judge_samples(
    judge: Judge, engine: Engine, samples: Sequence[Sample]
) -> list[list[JudgedTurn]]:
    predictor = Predictor(
        engine, Sampling(), ignore_progress, sum(len(sample.turns) for sample in samples)
    )
    return [await _episode(judge, predictor, sample) for sample in samples]


async def _episode(judge: Judge, predictor: Predictor, sample: Sample) -> list[JudgedTurn]:
    domain = domain_of(sample.domain)
    judged_turns: list[JudgedTurn] = []
    for index, turn in enumerate(sample.turns):
        guess = await predictor.predict(sample.prompt, sample.turns[:index], turn.action)
        judged_turns.append(judge.judge(domain, turn, guess))
    return judged_turns


def _lead(served: Episodes, baseline: Episodes, recipe: NightlyRecipe) -> Figures:
    def of(after: Values, before: Values) -> Estimate:
        return estimate_difference(after, before, recipe.num_resamples, recipe.seed)

    served_values, baseline_values = values_of(served, is_any), values_of(baseline, is_any)
    return Figures(
        exact_match=of(exact(served, is_any), exact(baseline, is_any)),
        metrics={
            name: of(served_values[name], baseline_values[name])
            for name in served_values
            if name in baseline_values
        },
    )
