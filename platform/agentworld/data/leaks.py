"""Training data that holds what it will be judged by: the held-out pool's words, or a benchmark's.

Two texts are compared by their 13-grams. A trajectory is a leak where a share of its 13-grams
occurs in what is judged, or where it holds that share of one judged text, however long it is
itself. A 13-gram of many tasks is boilerplate, such as a harness's words, and does not count: one
of more than 20, and where there are fewer than 200 tasks, of more than a tenth of them and of 5.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

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


class Judged(NamedTuple):
    """The 13-grams of what is judged, each pair of a 13-gram and a text once."""

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


class Hits(NamedTuple):
    """What rows of a batch have in common with what is judged."""

    rows: Integers
    grams: Integers
    """Places in `Judged.grams`, a row and a 13-gram in each pair."""
    sizes: Integers
    """How many different 13-grams each row has, boilerplate left out."""


class MatchJob(NamedTuple):
    """A survey, and the index that its rows are compared with."""

    survey: Path
    grams: Path
    """The judged 13-grams, in ascending order."""
    common: Path
    """Which of them are boilerplate by the judged texts alone."""


def most_tasks(num_tasks: int) -> int:
    """A 13-gram of more tasks than this is boilerplate."""
    return max(_FEWEST_TASKS, min(_MOST_TASKS, num_tasks // _TASKS_FOR_EACH))


def index_judged(texts: Sequence[Hashes]) -> Judged:
    """Of the 13-grams of each text."""
    numbers = np.repeat(np.arange(len(texts)), [len(each) for each in texts])
    grams = np.concatenate([np.zeros(0, np.uint64), *texts])
    order = np.lexsort((numbers, grams))
    distinct, starts = np.unique(grams[order], return_index=True)
    return Judged(distinct, np.append(starts, len(grams)), numbers[order], len(texts))


def match(job: MatchJob) -> Hits:
    """Compares the rows of one survey."""
    grams = read_column(job.survey, "grams")
    judged, common = np.load(job.grams, mmap_mode="r"), np.load(job.common, mmap_mode="r")
    sizes = np.diff(read_column(job.survey, "ends"), prepend=0)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    places = np.minimum(np.searchsorted(judged, grams), len(judged) - 1)
    is_hit = judged[places] == grams
    rows, places = rows[is_hit], places[is_hit]
    is_common = common[places]
    sizes = sizes - np.bincount(rows[is_common], minlength=len(sizes))
    return Hits(rows[~is_common], places[~is_common], sizes)


def find_leaks(hits: Hits, tasks: Hashes, judged: Judged, most: int, share: float) -> Mask:
    """Which rows are leaks; `tasks` has the task of each, and those held out have no hits."""
    is_rare = _num_tasks(hits, tasks, judged) <= most
    is_counted = is_rare[hits.grams]
    rows, grams = hits.rows[is_counted], hits.grams[is_counted]
    num_rows = len(hits.sizes)
    sizes = hits.sizes - np.bincount(hits.rows[~is_counted], minlength=num_rows)
    shared = np.bincount(rows, minlength=num_rows)
    is_leak = (shared >= _FEWEST_SHARED) & (shared >= share * sizes)
    is_leak[_rows_that_hold(rows, grams, judged, is_rare, share)] = True
    return is_leak


def _num_tasks(hits: Hits, tasks: Hashes, judged: Judged) -> Integers:
    """In how many tasks each judged 13-gram occurs; a judged text is one."""
    _, numbers = np.unique(tasks, return_inverse=True)
    pairs = np.unique(np.stack([hits.grams, numbers[hits.rows]]), axis=1)
    return judged.num_texts_of() + np.bincount(pairs[0], minlength=len(judged.grams))


def _rows_that_hold(
    rows: Integers, grams: Integers, judged: Judged, is_rare: Mask, share: float
) -> Integers:
    """The rows with the share of all the 13-grams of one judged text."""
    counts = judged.num_texts_of()
    pair_rows = np.repeat(rows, counts[grams])
    first = np.repeat(judged.starts[grams] - _before(counts[grams]), counts[grams])
    pair_texts = judged.texts[first + np.arange(len(first))]
    pairs, shared = np.unique(pair_rows * judged.num_texts + pair_texts, return_counts=True)
    sizes = np.bincount(judged.texts[np.repeat(is_rare, counts)], minlength=judged.num_texts)
    holds = (shared >= _FEWEST_SHARED) & (shared >= share * sizes[pairs % judged.num_texts])
    leaking_rows: Integers = pairs[holds] // judged.num_texts
    return leaking_rows


def _before(counts: Integers) -> Integers:
    """How many come before each."""
    return np.cumsum(counts) - counts
