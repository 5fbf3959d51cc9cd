"""Boilerplate 13-grams, counted over batches with limited memory."""

import random
import tracemalloc
from collections import defaultdict

import numpy as np
import pytest

from agentworld.data import leaks
from agentworld.data.leaks import Hits, RareGrams, index_grams

MOST = 5


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch):
    monkeypatch.setattr(leaks, "_FEWEST_AT_ONCE", 64)


def index_of(num_grams, *texts):
    all_grams = np.arange(num_grams, dtype=np.uint64)
    return index_grams([all_grams, *(np.array(text, np.uint64) for text in texts)])


def pairs(rows, grams, tasks, num_tasks):
    hits = Hits(np.array(rows, np.int64), np.array(grams, np.int64), np.zeros(0, np.int64))
    return hits.pairs(np.array(tasks), num_tasks)


@pytest.mark.parametrize("seed", range(20))
def test_a_gram_in_few_texts_and_tasks_is_rare_in_any_batching(seed):
    rng = random.Random(seed)
    num_grams, num_tasks = 40, rng.choice([3, 9, 30])
    texts = [sorted(rng.sample(range(num_grams), rng.randrange(20))) for _ in range(4)]
    index = index_of(num_grams, *texts)
    rare_grams, tasks_of = RareGrams(index, MOST, num_tasks), defaultdict(set)
    for _ in range(rng.randrange(30)):
        tasks = [rng.randrange(num_tasks) for _ in range(6)]
        rows = [rng.randrange(6) for _ in range(rng.randrange(40))]
        grams = [int(rng.triangular(0, num_grams, 0)) for _ in rows]
        rare_grams.add(pairs(rows, grams, tasks, num_tasks))
        for row, gram in zip(rows, grams, strict=True):
            tasks_of[gram].add(tasks[row])
    expected = [
        1 + sum(gram in text for text in texts) + len(tasks_of[gram]) <= MOST
        for gram in range(num_grams)
    ]
    assert rare_grams.mask().tolist() == expected
    assert rare_grams.mask().tolist() == expected  # reading changes nothing


@pytest.mark.compute
def test_memory_is_bounded_for_boilerplate_in_many_tasks():
    num_grams, num_tasks = 1_000, 500
    rare_grams = RareGrams(index_of(num_grams), MOST, num_tasks)
    batches = ([task] * num_grams for task in range(num_tasks))
    assert (
        peak_of(rare_grams, ((range(num_grams), tasks) for tasks in batches), num_tasks) < 1 << 20
    )  # all pairs are 4 MiB
    assert not rare_grams.mask().any()


@pytest.mark.compute
def test_the_counts_of_a_gram_are_dropped_once_the_gram_is_boilerplate():
    num_grams, num_tasks = 5_000, 100
    rare_grams = RareGrams(index_of(num_grams), MOST, num_tasks)
    batches = (([gram] * num_tasks, range(num_tasks)) for gram in range(num_grams))
    assert peak_of(rare_grams, batches, num_tasks) < 1 << 20  # all pairs are 4 MiB


def peak_of(rare_grams, batches, num_tasks):
    """The peak memory in bytes while 13-grams are added, each with a task."""
    tracemalloc.start()
    for grams, tasks in batches:
        rare_grams.add(pairs(range(len(grams)), grams, tasks, num_tasks))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak
