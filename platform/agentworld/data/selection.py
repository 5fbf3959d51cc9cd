"""Decides which of all surveyed trajectories stay.

Of copies and near-duplicates the first stays. Held-out trajectories count as first, so no training
pool has a near-duplicate of a held-out trajectory.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentworld.data.benchmarks import benchmark_texts
from agentworld.data.contents import COPY, are_copies
from agentworld.data.leaks import (
    MatchJob,
    RareGrams,
    index_grams,
    leaks_of,
    most_tasks,
    pairs_of,
)
from agentworld.data.n_grams import Hashes, hash_words, n_grams
from agentworld.data.near_duplicates import near_duplicates
from agentworld.data.survey import WORDS_PER_GRAM, SurveyJob, grams_of, read_column
from agentworld.data.workers import Workers

Mask = npt.NDArray[np.bool_]

NEAR_COPY = "near-duplicate trajectory"
HELD_OUT_LEAK = "leak of held-out data"
BENCHMARK_LEAK = "leak of a benchmark"
_RARE = "rare.npy"


class Selection(NamedTuple):
    """The trajectories of all batches."""

    remaining: Sequence[Mask]
    """For each batch, a mask of the rows of its survey that stay."""
    removed: Counter[str]


def select(jobs: Sequence[SurveyJob], benchmarks: Sequence[str], workers: Workers) -> Selection:
    """Removes copies first, then near-duplicates, then leaks.

    `benchmarks` are addresses; the jobs' recipe has the digests of their content.
    """
    recipe, rows = jobs[0].recipe, _Rows(jobs)
    copies = are_copies(rows.column("contents")[rows.order])
    removed = Counter({COPY: rows.drop(copies, rows.order)})
    if recipe.near_duplicates is not None:
        order = rows.order[rows.remaining[rows.order]]
        is_near = near_duplicates(rows.column("signatures")[order], recipe.near_duplicates)
        removed[NEAR_COPY] = rows.drop(is_near, order)
    if recipe.leaks is not None:
        held_out = list(_held_out(rows))
        removed[HELD_OUT_LEAK] = _drop_leaks(rows, held_out, recipe.leaks, workers)
        texts = [grams for source in benchmarks for grams in _benchmark(source)]
        removed[BENCHMARK_LEAK] = _drop_leaks(rows, texts, recipe.leaks, workers)
    return Selection(np.split(rows.remaining, rows.ends[:-1]), +removed)


class _Rows:
    """The trajectories of all surveys."""

    def __init__(self, jobs: Sequence[SurveyJob]) -> None:
        self.jobs = jobs
        held_out = [read_column(job.path, "held_out") for job in jobs]
        self.ends = np.cumsum([len(column) for column in held_out])
        self.held_out: Mask = np.concatenate(held_out)
        self.order = np.argsort(~self.held_out, kind="stable")
        """The indexes of all rows: held-out ones first, otherwise in the order of reading."""
        self.remaining: Mask = np.ones(len(self.held_out), np.bool_)

    def column(self, name: str) -> npt.NDArray[Any]:
        return np.concatenate([read_column(job.path, name) for job in self.jobs])

    def drop(self, mask: Mask, numbers: npt.NDArray[np.intp]) -> int:
        """Removes the marked ones of the rows with these numbers, and counts them."""
        self.remaining[numbers[mask]] = False
        return int(mask.sum())


def _held_out(rows: _Rows) -> Iterator[Hashes]:
    """The 13-grams of each held-out task, in all its trials."""
    tasks: dict[int, list[Hashes]] = {}
    start = 0
    for job, end in zip(rows.jobs, rows.ends.tolist(), strict=True):
        places = np.flatnonzero((rows.held_out & rows.remaining)[start:end])
        names = read_column(job.path, "tasks")
        for row, grams in zip(places, grams_of(job.path, places), strict=True):
            tasks.setdefault(int(names[row]), []).append(grams)
        start = end
    return (np.unique(np.concatenate(trials)) for trials in tasks.values())


def _benchmark(source: str) -> Iterator[Hashes]:
    for text in benchmark_texts(source):
        yield n_grams(hash_words([text])[0], WORDS_PER_GRAM)


def _drop_leaks(rows: _Rows, texts: Sequence[Hashes], share: float, workers: Workers) -> int:
    judged, folder = index_grams(texts), rows.jobs[0].folder
    if not len(judged.grams):
        return 0
    is_training = rows.remaining & ~rows.held_out
    names, numbers = np.unique(rows.column("tasks"), return_inverse=True)
    most = most_tasks(len(np.unique(numbers[is_training])) + len(texts))
    parts = np.split(np.where(is_training, numbers, -1), rows.ends[:-1])
    judged.save(folder)
    pairs = zip(rows.jobs, parts, strict=True)
    jobs = [MatchJob(job.path, folder, tasks, len(names)) for job, tasks in pairs]
    rare = RareGrams(judged, most, len(names))
    for batch in workers.map(pairs_of, jobs):
        rare.add(batch)
    np.save(folder / _RARE, rare.mask())
    leaks = partial(leaks_of, rare=folder / _RARE, share=share)
    is_leak = np.concatenate(list(workers.map(leaks, jobs)))
    return rows.drop(is_leak, np.arange(len(is_leak)))
