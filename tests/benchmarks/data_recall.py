"""The shares of planted pairs and leaks that are found, and of false positives: independent of
time.
"""

import random

import numpy as np

from agentworld.data.leaks import Hits, RareGrams, find_leaks, index_grams, most_tasks
from agentworld.data.n_grams import Hashes, hash_words, n_grams
from agentworld.data.near_duplicates import near_duplicates, sign
from agentworld.data.survey import WORDS_PER_GRAM
from agentworld.recipes.data import PrepareRecipe
from benchmarks.data_logs import vocabulary

_RECIPE = PrepareRecipe()
_NUM_PAIRS, _NUM_LEAKS = 10_000, 2_000
_WORDS_PER_SHINGLE = 5


def dedup_recall() -> float:
    """The removed share of pairs at Jaccard 0.9: 180 shingles in common, 10 more on each side."""
    return _removed_of_pairs(180, 10)


def dedup_false() -> float:
    """The removed share of pairs at Jaccard 0.5: 120 in common, 60 more on each side."""
    return _removed_of_pairs(120, 60)


def leak_shares() -> tuple[float, float]:
    """The removed shares of trajectories with half of a held-out one, and of the others.

    All texts have the same words and the same harness's sentence after every 40 of them.
    """
    rng, words = random.Random(0), vocabulary()
    held_out = [_text(rng, words) for _ in range(_NUM_LEAKS)]
    leaks = [[*text[: len(text) // 2], *_text(rng, words)[: len(text) // 2]] for text in held_out]
    clean = [_text(rng, words) for _ in range(_NUM_LEAKS)]
    is_removed = _leaks_of([_grams(text) for text in [*leaks, *clean]], list(map(_grams, held_out)))
    return float(is_removed[:_NUM_LEAKS].mean()), float(is_removed[_NUM_LEAKS:].mean())


def _removed_of_pairs(num_shared: int, num_own: int) -> float:
    rng, words = random.Random(0), vocabulary()
    texts = []
    for _ in range(_NUM_PAIRS):
        common = rng.choices(words, k=num_shared + _WORDS_PER_SHINGLE - 1)
        texts += [" ".join([*common, *rng.choices(words, k=num_own)]) for _ in range(2)]
    is_removed = near_duplicates(sign(hash_words(texts)), _RECIPE.near_duplicates or 1)
    return float(is_removed[1::2].mean())


def _text(rng: random.Random, words: list[str]) -> list[str]:
    harness = "the command ran in the folder and printed the lines above and no other line".split()
    return [word for _ in range(10) for word in [*rng.choices(words, k=40), *harness]]


def _grams(text: list[str]) -> Hashes:
    return n_grams(hash_words([" ".join(text)])[0], WORDS_PER_GRAM)


def _leaks_of(texts: list[Hashes], held_out: list[Hashes]) -> np.ndarray:
    gram_index = index_grams(held_out)
    sizes = np.array([len(text) for text in texts])
    grams, rows = np.concatenate(texts), np.repeat(np.arange(len(texts)), sizes)
    places = np.minimum(np.searchsorted(gram_index.grams, grams), len(gram_index.grams) - 1)
    is_hit = gram_index.grams[places] == grams
    max_tasks = most_tasks(len(texts) + len(held_out))
    hits = Hits(rows[is_hit], places[is_hit], sizes)
    rare = RareGrams(gram_index, max_tasks, num_tasks=len(texts))
    rare.add(hits.pairs(tasks=np.arange(len(texts)), num_tasks=len(texts)))
    return find_leaks(hits, gram_index, rare.mask(), _RECIPE.leaks or 1)
