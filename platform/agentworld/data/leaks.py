"""Finds leaks: training trajectories that contain text of the held-out pool or of a benchmark.

Here these evaluation texts are called judged texts. Texts are compared by their 13-grams. A
trajectory is a leak if a share of its own 13-grams occurs in judged texts, or if it contains that
share of the 13-grams of one judged text. A 13-gram of many tasks is boilerplate, such as a
harness's words, and does not count. The limit is 20 tasks; with fewer than 200 tasks it is a tenth
of them, and at least 5.

Batches are read twice. The first pass counts the tasks of each judged 13-gram, up to the limit. The
second pass finds each batch's leaks by the rare 13-grams. So memory is bounded by the judged texts
and one batch.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from agentworld.data.n_grams import Hashes
from agentworld.data.survey import read_column

Mask = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

_MOST_TASKS = 20
_FEWEST_TASKS = 5
_TASKS_FOR_EACH = 10
_FEWEST_SHARED = 4
_FEWEST_AT_ONCE = 1 << 18


class GramIndex(NamedTuple):
    """The 13-grams of the judged texts; each pair of a 13-gram and a text occurs once."""

    grams: Hashes
    """The different ones, in ascending order."""
    starts: Integers
    """For each of them its first pair, and at the end the number of pairs."""
    texts: Integers
    """The text of each pair."""
    num_texts: int

    def num_texts_of(self) -> Integers:
        """In how many texts each 13-gram occurs."""
        return np.diff(self.starts)

    def save(self, folder: Path) -> None:
        """Writes the index for other processes, and replaces an earlier one."""
        for name, value in self._asdict().items():
            np.save(folder / f"judged-{name}.npy", value)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Loads an index; its arrays are mapped, so they stay on the disk until they are read."""
        return cls(*(np.load(folder / f"judged-{name}.npy", mmap_mode="r") for name in cls._fields))


class Hits(NamedTuple):
    """The 13-grams that rows have in common with the judged texts."""

    rows: Integers
    grams: Integers
    """Places in `GramIndex.grams`, a row and a 13-gram in each pair."""
    sizes: Integers
    """How many different 13-grams each row has."""

    def pairs(self, tasks: Integers, num_tasks: int) -> Integers:
        """Each 13-gram with each of its tasks once, as one number; `tasks` has that of each row."""
        return np.unique(self.grams * num_tasks + tasks[self.rows])


class MatchJob(NamedTuple):
    """A survey whose rows are compared with the judged texts."""

    survey: Path
    folder: Path
    """The folder that `GramIndex.save` wrote."""
    tasks: Integers
    """The number of each row's task; -1 for a row that is not training data."""
    num_tasks: int


def most_tasks(num_tasks: int) -> int:
    """A 13-gram of more tasks than this is boilerplate."""
    return max(_FEWEST_TASKS, min(_MOST_TASKS, num_tasks // _TASKS_FOR_EACH))


def index_grams(texts: Sequence[Hashes]) -> GramIndex:
    """Builds the index from the 13-grams of each text."""
    numbers = np.repeat(np.arange(len(texts)), [len(hashes) for hashes in texts])
    grams = np.concatenate([np.zeros(0, np.uint64), *texts])
    order = np.lexsort((numbers, grams))
    distinct, starts = np.unique(grams[order], return_index=True)
    return GramIndex(distinct, np.append(starts, len(grams)), numbers[order], len(texts))


class RareGrams:
    """Finds the judged 13-grams that few tasks have; each judged text counts as a task.

    For each 13-gram it keeps only as many tasks as make it boilerplate.
    """

    def __init__(self, index: GramIndex, most: int, num_tasks: int) -> None:
        self._num_texts = index.num_texts_of()
        self._most = most
        self._num_tasks = num_tasks
        self._is_rare = self._num_texts <= most
        self._pairs: Integers = np.zeros(0, np.int64)
        self._recent: list[Integers] = []

    def add(self, pairs: Integers) -> None:
        """Counts what `Hits.pairs` gives."""
        self._recent.append(pairs[self._is_rare[pairs // self._num_tasks]])
        if sum(map(len, self._recent)) > max(_FEWEST_AT_ONCE, len(self._pairs)):
            self._merge()

    def mask(self) -> Mask:
        """Which of the judged 13-grams are rare, by all that was counted."""
        self._merge()
        return self._is_rare

    def _merge(self) -> None:
        pairs = np.unique(np.concatenate([self._pairs, *self._recent]))
        grams = pairs // self._num_tasks
        num_tasks = np.bincount(grams, minlength=len(self._num_texts))
        self._is_rare &= self._num_texts + num_tasks <= self._most
        self._pairs, self._recent = pairs[self._is_rare[grams]], []


def pairs_of(job: MatchJob) -> Integers:
    """What `RareGrams` counts of one survey."""
    return _hits(job, GramIndex.load(job.folder)).pairs(job.tasks, job.num_tasks)


def leaks_of(job: MatchJob, rare: Path, share: float) -> Mask:
    """For each row of a survey, whether it is a leak; the file has the mask of `RareGrams`."""
    index = GramIndex.load(job.folder)
    return find_leaks(_hits(job, index), index, np.load(rare), share)


def find_leaks(hits: Hits, index: GramIndex, is_rare: Mask, share: float) -> Mask:
    """For each row, whether it is a leak; `is_rare` is a mask of the judged 13-grams."""
    is_counted = is_rare[hits.grams]
    rows, grams = hits.rows[is_counted], hits.grams[is_counted]
    sizes = hits.sizes - np.bincount(hits.rows[~is_counted], minlength=len(hits.sizes))
    shared = np.bincount(rows, minlength=len(sizes))
    is_leak = (shared >= _FEWEST_SHARED) & (shared >= share * sizes)
    is_leak[_rows_that_hold(rows, grams, index, is_rare, share)] = True
    return is_leak


def _hits(job: MatchJob, index: GramIndex) -> Hits:
    """The hits of the rows that are training data."""
    grams = read_column(job.survey, "grams")
    sizes = np.diff(read_column(job.survey, "ends"), prepend=0)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    places = np.minimum(np.searchsorted(index.grams, grams), len(index.grams) - 1)
    is_hit = (index.grams[places] == grams) & (job.tasks[rows] >= 0)
    return Hits(rows[is_hit], places[is_hit], sizes)


def _rows_that_hold(
    rows: Integers, grams: Integers, index: GramIndex, is_rare: Mask, share: float
) -> Integers:
    """The rows that contain the share of the 13-grams of one judged text."""
    counts = index.num_texts_of()
    pair_rows = np.repeat(rows, counts[grams])
    first = np.repeat(index.starts[grams] - _before(counts[grams]), counts[grams])
    pair_texts = index.texts[first + np.arange(len(first))]
    pairs, shared = np.unique(pair_rows * index.num_texts + pair_texts, return_counts=True)
    sizes = np.bincount(index.texts[np.repeat(is_rare, counts)], minlength=index.num_texts)
    holds = (shared >= _FEWEST_SHARED) & (shared >= share * sizes[pairs % index.num_texts])
    leaking_rows: Integers = pairs[holds] // index.num_texts
    return leaking_rows


def _before(counts: Integers) -> Integers:
    """The number of elements before each group."""
    return np.cumsum(counts) - counts
