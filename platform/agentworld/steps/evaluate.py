"""Evaluates each stage's checkpoint and four baselines on the same held-out live episodes."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain
from pathlib import Path

from agentworld.engine.base import Engine
from agentworld.engine.server import serve
from agentworld.evaluate.absent import absent_metrics
from agentworld.evaluate.baselines import CopyPrevious, MostFrequent, RepeatEarlier
from agentworld.evaluate.compare import Comparison
from agentworld.evaluate.guesses import read_guesses
from agentworld.evaluate.nearest import NearestTransition
from agentworld.evaluate.rubric import RubricScorer
from agentworld.evaluate.world import ScoredWorld, evaluate_world
from agentworld.recipes import Recipe
from agentworld.recipes.serve import EvaluateRecipe
from agentworld.records.base import Digest
from agentworld.records.checkpoint import WORLD_STAGES
from agentworld.records.endpoint_usage import JudgeUse
from agentworld.records.progress import (
    OnProgress,
    concurrent_parts,
    ignore_progress,
    sequential_parts,
)
from agentworld.records.report import Estimate, WorldModelReport, WorldModelScore
from agentworld.records.sample import Pool, Sample
from agentworld.runner.folders import REPORT, checkpoint_of, context_tokens_of, model_of
from agentworld.runner.task import Plan, Task
from agentworld.steps.answers import open_answers
from agentworld.steps.content import content_of
from agentworld.steps.stages import stage_folders
from agentworld.storage.pools import read_dataset, read_pool

_TRAINING: tuple[Pool, ...] = ("cpt", "sft", "rl")


def plan(task: Task) -> Plan:
    """Scores several of them at the same time. Raises InputError for a missing embedding model."""
    settings, data = task.recipe, task.folders["data"]
    stages = stage_folders(task)

    def work(out: Path, on_progress: OnProgress) -> Digest:
        samples = list(_samples(data, "held_out"))
        scorers = _baselines(data, samples, settings, out)
        names = [*scorers]
        for stage, folder in stages.items():
            is_last = stage == [*stages][-1]
            scorers[stage] = _stage_scorer(stage, folder, samples, settings, out, is_last=is_last)
        on_predicted, on_judged = _parts(settings, on_progress)
        worlds = _run_all(scorers, settings.evaluate, out, on_predicted)
        worlds, judge_use = _judge_all(worlds, samples, task, out, on_judged)
        baselines = {name: worlds[name] for name in names}
        by_stage = {stage: worlds[stage] for stage in stages}
        comparison = Comparison(samples, settings.evaluate)
        report = WorldModelReport(
            data=task.digests["data"],
            stages=_compare(by_stage, baselines, comparison),
            artifacts={name: checkpoint_of(folder).artifact for name, folder in stages.items()},
            baselines={name: world.score for name, world in baselines.items()},
            absent=absent_metrics(
                settings.evaluate, *(world.score.metrics for world in by_stage.values())
            ),
            judge=judge_use,
            rule=settings.evaluate.validated,
            **_differences(worlds, comparison),
        )
        report.write(out / REPORT)
        return report.digest

    inputs = content_of("embedding_model", settings.evaluate.embedding_model)
    return Plan(work, inputs, domains=read_dataset(data).domains)


def _parts(recipe: Recipe, on_progress: OnProgress) -> Sequence[OnProgress]:
    """Progress callbacks for the predictors, and for the judge."""
    if recipe.evaluate.judge:
        return sequential_parts(on_progress, 2)
    return on_progress, ignore_progress


def _judge_all(
    worlds: dict[str, ScoredWorld],
    samples: Sequence[Sample],
    task: Task,
    out: Path,
    on_progress: OnProgress,
) -> tuple[dict[str, ScoredWorld], JudgeUse | None]:
    """Adds the scores of the recipe's judge, if it has one.

    No model is served meanwhile, and a killed step repeats no request.
    """
    recipe = task.recipe.evaluate
    if recipe.judge is None:
        return worlds, None
    parts = sequential_parts(on_progress, len(worlds))
    with closing(RubricScorer(recipe.judge, samples, recipe, open_answers(task.store))) as scorer:
        judged_worlds = {
            name: scorer.add_scores(name, world, read_guesses(_guesses(out, name)), part)
            for (name, world), part in zip(worlds.items(), parts, strict=True)
        }
        return judged_worlds, scorer.use


def _guesses(out: Path, name: str) -> Path:
    """The file of a predictor's answers; in its own folder, because every step downloads the files
    beside its record.
    """
    return out / "guesses" / f"{name}.json"


def _compare(
    stages: dict[str, ScoredWorld], baselines: dict[str, ScoredWorld], by: Comparison
) -> dict[str, WorldModelScore]:
    """The stages' scores with their leads, and the gain of each over the one before it."""
    scores: dict[str, WorldModelScore] = {}
    before = ""
    for stage, scored in stages.items():
        gain = by.gain_over(before, scored, stages[before]) if before else None
        comparisons = {"leads": by.leads(scored, baselines), "gain": gain}
        scores[stage] = scored.score.model_copy(update=comparisons)
        before = stage
    return scores


def _differences(worlds: dict[str, ScoredWorld], by: Comparison) -> dict[str, Estimate]:
    """The gain of RL, and the lead of the best stage after CPT, or of CPT alone."""
    stages = [worlds[name] for name in ("sft", "rl") if name in worlds] or [worlds["cpt"]]
    best = max(stages, key=lambda world: world.score.exact_match.mean)
    baselines = [world for name, world in worlds.items() if name not in WORLD_STAGES]
    differences = {"lead": by.smallest_lead(best, baselines)}
    if {"sft", "rl"} <= worlds.keys():
        differences["rl_gain"] = by.gain(worlds["rl"], worlds["sft"])
    return differences


_Scorer = Callable[[OnProgress], ScoredWorld]


def _run_all(
    scorers: dict[str, _Scorer], recipe: EvaluateRecipe, out: Path, on_progress: OnProgress
) -> dict[str, ScoredWorld]:
    """All scores; the finished ones of a killed step are reused."""
    parts = concurrent_parts(on_progress, len(scorers))

    def run(name: str, part: OnProgress) -> ScoredWorld:
        path = out / f"{name}.json"
        # A bucket receives the files of a killed step in any order.
        is_whole = path.is_file() and not (recipe.judge and not _guesses(out, name).is_file())
        if not is_whole:
            scorers[name](part).write(path)
        return ScoredWorld.read(path)

    with ThreadPoolExecutor(recipe.at_once) as threads:
        return dict(zip(scorers, threads.map(run, scorers, parts), strict=True))


def _stage_scorer(
    stage: str,
    folder: Path,
    samples: Sequence[Sample],
    recipe: Recipe,
    out: Path,
    *,
    is_last: bool,
) -> _Scorer:
    """Serves the stage's model while it is scored, with the engine of the later simulator."""

    def score(on_progress: OnProgress) -> ScoredWorld:
        with serve(
            model_of(folder).resolve(),
            recipe.engine,
            sampling=recipe.simulate.sampling,
            context_tokens=context_tokens_of(folder),
            log=out / "logs" / f"{stage}.log",
        ) as engine:
            return _score(
                engine.connect(),
                samples,
                recipe,
                on_progress,
                _guesses(out, stage),
                free_running=is_last,
            )

    return score


def _score(
    engine: Engine,
    samples: Sequence[Sample],
    recipe: Recipe,
    on_progress: OnProgress,
    guesses_path: Path,
    *,
    free_running: bool = False,
) -> ScoredWorld:
    update = {} if free_running else {"num_free_running": 0}
    part = recipe.evaluate.model_copy(update=update)

    async def ask() -> ScoredWorld:
        try:
            return await evaluate_world(
                engine,
                samples,
                part,
                on_progress,
                recipe.simulate.sampling,
                guesses_path if part.judge else None,
            )
        finally:
            await engine.close()

    return asyncio.run(ask())


def _training(data: Path) -> Iterator[Sample]:
    return chain.from_iterable(_samples(data, pool) for pool in _TRAINING)


BASELINES: dict[str, Callable[[Path], Engine]] = {
    "copy": lambda _: CopyPrevious(),
    "repeat": lambda _: RepeatEarlier(),
    "frequent": lambda data: MostFrequent(_training(data)),
    "nearest": lambda data: NearestTransition(_training(data)),
}
"""The baselines, as functions of the data set."""


def _baselines(
    data: Path, samples: Sequence[Sample], recipe: Recipe, out: Path
) -> dict[str, _Scorer]:
    def scorer(name: str, open_engine: Callable[[Path], Engine]) -> _Scorer:
        return lambda on_progress: _score(
            open_engine(data), samples, recipe, on_progress, _guesses(out, name)
        )

    return {name: scorer(name, open_engine) for name, open_engine in BASELINES.items()}


def _samples(data: Path, pool: Pool) -> Iterator[Sample]:
    return read_pool(data, read_dataset(data), pool)
