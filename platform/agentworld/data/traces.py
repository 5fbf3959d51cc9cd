"""Makes the traces of a data set: a teacher predicts turns of the pool `sft`, and a judge selects.

Threads work on prompts side by side, and the result is in the order of the pool. Each answer is in
the store of answers before it counts, so that a killed run asks only for what is missing.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from agentworld.data.hash_uniform import hash_uniform
from agentworld.data.tracer import TracePrompt, Tracer, TraceResult
from agentworld.errors import InputError
from agentworld.recipes.traces import TracesRecipe
from agentworld.records.progress import OnProgress
from agentworld.records.sample import Sample
from agentworld.records.traces import TraceReport, TraceSet, TraceYield, total_yield
from agentworld.scoring.answers import AnswerStore
from agentworld.scoring.holes import HoleLimit
from agentworld.storage.pools import read_dataset, read_pool
from agentworld.storage.traces import write_traces

YIELDS = "yields.json"


def make_traces(
    recipe: TracesRecipe,
    data: Path,
    out: Path,
    on_progress: OnProgress,
    *,
    answers: AnswerStore,
    pause_seconds: float = 2.0,
) -> TraceSet:
    """Writes the traces and their yields into a folder.

    Raises JudgeError if at least half of the prompts are holes, and InputError if no trace was
    selected. What was answered stays in the store of answers.
    """
    dataset = read_dataset(data)
    pool = read_pool(data, dataset, "sft")
    prompts = [prompt for sample in pool for prompt in trace_prompts(recipe, sample)]
    with closing(Tracer(recipe, answers, pause_seconds=pause_seconds)) as tracer:
        results = _run(tracer, recipe, prompts, on_progress)
    report = _report(results)
    traces = [result.trace for result in results if result.trace]
    if not traces:
        raise InputError(_nothing_selected(recipe, report.total))
    report.write(out / YIELDS)
    return write_traces(out, dataset.digest, recipe.identity.model_dump(mode="json"), traces)


def trace_prompts(recipe: TracesRecipe, sample: Sample) -> Iterator[TracePrompt]:
    """The prompts of a sample, in the order of its turns."""
    targets = sorted(
        sample.targets,
        key=lambda turn: hash_uniform(recipe.seed, "trace", sample.trajectory, turn),
    )
    for turn in sorted(targets[: recipe.turns]):
        yield TracePrompt(sample, turn)


def _run(
    tracer: Tracer, recipe: TracesRecipe, prompts: Sequence[TracePrompt], on_progress: OnProgress
) -> list[TraceResult]:
    results: list[TraceResult] = []
    holes = HoleLimit("prompts", "decision")
    # As many as keep both endpoints busy: each thread waits for one of them.
    pool = ThreadPoolExecutor(recipe.teacher.concurrency + recipe.judge.concurrency)
    try:
        for result in pool.map(tracer.trace, prompts):
            results.append(result)
            holes.add(result.problem if result.counts.holes else None)
            on_progress(len(results), len(prompts))
    finally:
        pool.shutdown(cancel_futures=True)
    holes.check()
    return results


def _report(results: Iterable[TraceResult]) -> TraceReport:
    by_domain: dict[str, list[TraceYield]] = {}
    for result in results:
        by_domain.setdefault(result.domain, []).append(result.counts)
    domains = {name: total_yield(by_domain[name]) for name in sorted(by_domain)}
    return TraceReport(domains=domains, total=total_yield(domains.values()))


def _nothing_selected(recipe: TracesRecipe, counts: TraceYield) -> str:
    if not counts.rollouts:
        return (
            f"none of {counts.unusable} answers of the teacher {recipe.teacher.model} has a thought"
            " and an observation; name a model that shows its thoughts, or raise max_tokens"
        )
    return (
        f"no trace was selected: {counts.passed} of {counts.scored} scores reach the threshold"
        f" {recipe.threshold:g}; lower traces.threshold, or name a better teacher"
    )
