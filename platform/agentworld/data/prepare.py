"""Makes a data set from trajectories: samples in disjoint pools, and a manifest.

Each trajectory goes to exactly one pool. A training pool has no content that a domain reserves for
held-out episodes. The held-out pool must have enough turns of each kind that the domain requires.

There are two passes over batches of trajectories, and several processes work on batches. The first
pass surveys the trajectories. Then it is decided which of them stay. The second pass makes samples.
The result depends on the order of the trajectories, but not on the batches or the processes.
"""

import math
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from agentworld.data.pooling import PoolJob, make_pools
from agentworld.data.selection import Selection, select
from agentworld.data.summary import Summary
from agentworld.data.survey import SurveyJob, survey
from agentworld.data.workers import Workers, num_processors
from agentworld.domains.base import UNSEEN, domain_of
from agentworld.errors import InputError
from agentworld.recipes.data import PrepareRecipe
from agentworld.records.base import Digest
from agentworld.records.collected import Collected
from agentworld.records.dataset import DataSet, Parent, PoolFile
from agentworld.records.garbled import redact
from agentworld.records.progress import OnProgress
from agentworld.records.sample import POOLS
from agentworld.storage.batches import BYTES_PER_BATCH, batches_of
from agentworld.storage.pools import MANIFEST, PoolWriter
from agentworld.storage.source import digest_of
from agentworld.storage.trajectories import read_collected

_WORK = "survey"


def prepare(
    recipe: PrepareRecipe,
    collected: Path,
    out: Path,
    on_progress: OnProgress,
    *,
    benchmarks: Sequence[Digest] = (),
    bytes_per_batch: int = BYTES_PER_BATCH,
) -> DataSet:
    """Writes the pools into a folder; raises InputError if they would be of no use.

    `benchmarks` are the digests of the recipe's benchmarks, in their order. Raises InputError if a
    benchmark changed.

    A repeated run reuses the surveys of a killed one. After an error the surveys are removed.
    """
    _check_shares(recipe)
    source = read_collected(collected)
    shaping = recipe.model_copy(update={"num_workers": None, "benchmarks": tuple(benchmarks)})
    batches = batches_of([collected / name for name in source.chunks], bytes_per_batch)
    if not batches:
        raise InputError(f"{collected} holds no trajectory; collect or import some first")
    jobs = [SurveyJob(shaping, source.digest, batch, out / _WORK) for batch in batches]
    num_workers = min(recipe.num_workers or num_processors(), len(jobs))
    out.mkdir(parents=True, exist_ok=True)
    try:
        with Workers(num_workers) as workers:
            selection = _survey(jobs, recipe.benchmarks, workers, on_progress)
            _check_unchanged(recipe.benchmarks, benchmarks)
            dataset = _write(shaping, source, jobs, selection, workers, out, on_progress)
    except (InputError, ValueError):
        shutil.rmtree(out / _WORK, ignore_errors=True)
        raise
    shutil.rmtree(out / _WORK)
    _check_pools(dataset)
    dataset.write(out / MANIFEST)
    return dataset


def _survey(
    jobs: Sequence[SurveyJob], benchmarks: Sequence[str], workers: Workers, on_progress: OnProgress
) -> Selection:
    removed = Counter[str]()
    for number, counts in enumerate(workers.map(survey, jobs), start=1):
        removed += counts
        on_progress(number, 2 * len(jobs))
    selection = select(jobs, benchmarks, workers)
    selection.removed.update(removed)
    return selection


def _check_unchanged(sources: Sequence[str], contents: Sequence[Digest]) -> None:
    for source, content in zip(sources, contents, strict=True):
        if digest_of(source) != content:
            raise InputError(
                f"{redact(source)} changed while it was read; stop the program"
                " that writes it and try again"
            )


def _write(
    recipe: PrepareRecipe,
    source: Collected,
    jobs: Sequence[SurveyJob],
    selection: Selection,
    workers: Workers,
    out: Path,
    on_progress: OnProgress,
) -> DataSet:
    removed, summary = selection.removed, Summary()
    with ExitStack() as stack:
        writers = {pool: stack.enter_context(PoolWriter(out / f"{pool}.parquet")) for pool in POOLS}
        pool_jobs = [PoolJob(*pair) for pair in zip(jobs, selection.remaining, strict=True)]
        for number, pools in enumerate(workers.map(make_pools, pool_jobs), start=len(jobs) + 1):
            for pool, rows in pools.rows.items():
                writers[pool].add(rows)
            removed += pools.removed
            summary.merge(pools.summary)
            on_progress(number, 2 * len(jobs))
    return DataSet(
        parents=(Parent.of(source),),
        recipe=recipe.model_dump(mode="json"),
        pools={pool: writer.summary() for pool, writer in writers.items()},
        filtered=dict(sorted(removed.items())),
        **summary.fields(),
    )


def _check_shares(recipe: PrepareRecipe) -> None:
    if recipe.cpt_share + recipe.sft_share >= 1:
        raise InputError(
            f"cpt_share {recipe.cpt_share} and sft_share {recipe.sft_share} leave nothing for RL;"
            " lower one of them"
        )


def _check_pools(dataset: DataSet) -> None:
    for pool, file in dataset.pools.items():
        if not file.num_samples:
            raise InputError(f"the pool {pool} is empty; collect more episodes for it")
        if pool != "held_out" and file.share(UNSEEN):
            raise ValueError(f"the training pool {pool} holds held-out content")
    for domain in dataset.domains if len(dataset.domains) == 1 else ():
        _check_held_out(domain, dataset.pools["held_out"])  # tags of several are counted together


def _check_held_out(domain: str, file: PoolFile) -> None:
    for tag, minimum in domain_of(domain).minimum_shares.items():
        if _is_below(file.share(tag), minimum, file.num_turns):
            raise InputError(
                f"only {file.share(tag):.0%} of the held-out turns have the tag {tag!r}, and"
                f" {minimum:.0%} should in the domain {domain}: collect more held-out episodes,"
                " longer ones (turns_per_episode), or fewer that pursue a task (task_share)"
            )


def _is_below(share: float, minimum: float, num_turns: int) -> bool:
    """Whether a share is too small by more than two standard errors of its number of turns."""
    return share < minimum - 2 * math.sqrt(minimum * (1 - minimum) / num_turns)
