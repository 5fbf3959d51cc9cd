"""Pairs of texts of a known similarity, their groups, and texts too short to compare."""

import random

import numpy as np
import pytest

from agentworld.data.n_grams import hash_words, n_grams
from agentworld.data.near_duplicates import near_duplicates, sign

WORDS_PER_SHINGLE = 5


def words(rng, count):
    return [f"w{rng.randrange(10**9)}" for _ in range(count)]


def pair(rng, num_shared, num_own):
    """Two texts with `num_shared` shingles in common, and `num_own` further shingles each."""
    shared_words = words(rng, num_shared + WORDS_PER_SHINGLE - 1)
    return [" ".join([*shared_words, *words(rng, num_own)]) for _ in range(2)]


def sign_all(texts):
    return sign(hash_words(texts))


def share_of_removed(num_shared, num_own, num_pairs=400, threshold=0.8):
    rng = random.Random(0)
    texts = [text for _ in range(num_pairs) for text in pair(rng, num_shared, num_own)]
    removed = near_duplicates(sign_all(texts), threshold)
    assert not removed[::2].any()  # the first of a pair stays
    return removed[1::2].mean()


@pytest.mark.compute
@pytest.mark.parametrize("size", [1, 5])
def test_at_least_99_percent_of_pairs_with_similarity_090_are_removed(size):
    assert share_of_removed(36 * size, 2 * size) >= 0.99


@pytest.mark.compute
@pytest.mark.parametrize("size", [1, 5])
def test_at_most_1_percent_of_pairs_with_similarity_050_is_removed(size):
    assert share_of_removed(20 * size, 10 * size) <= 0.01


def test_a_generated_pair_has_the_intended_similarity():
    first, second = (
        set(n_grams(text_words, WORDS_PER_SHINGLE).tolist())
        for text_words in hash_words(pair(random.Random(1), 36, 2))
    )
    assert len(first & second) / len(first | second) == 0.9


def test_each_of_two_groups_keeps_only_its_first_text():
    first, other = (" ".join(words(random.Random(seed), 60)) for seed in range(2))
    texts = [first, other, f"{first} end", f"{other} end", f"{first} close", other]
    assert near_duplicates(sign_all(texts), 0.8).tolist() == [False, False, True, True, True, True]


def test_a_row_is_compared_with_each_group_of_a_band():
    first, other = np.random.default_rng(0).integers(1, 1 << 32, (2, 128), np.uint32)
    other[:8] = first[:8]
    near_row = other.copy()
    near_row[8::8] += 1  # in each band but the one that all three share
    assert near_duplicates(np.stack([first, other, near_row]), 0.8).tolist() == [False, False, True]


def test_a_text_that_is_near_only_to_a_removed_text_is_removed_too():
    rng = random.Random(2)
    text = words(rng, 104)
    chain = [" ".join(text[start : start + 84]) for start in (0, 8, 16)]
    assert near_duplicates(sign_all(chain), 0.8).tolist() == [False, True, True]


def test_short_texts_are_never_near_duplicates():
    assert not near_duplicates(sign_all(["one two three four five six seven"] * 3), 0.8).any()
    assert not near_duplicates(sign_all([]), 0.8).size


def test_signatures_do_not_depend_on_the_batch():
    rng = random.Random(3)
    texts = [text for _ in range(20) for text in pair(rng, 36, 2)]
    expected, joined = sign_all(texts), np.concatenate([sign_all(texts[:7]), sign_all(texts[7:])])
    assert (expected == joined).all()


def test_ideographs_are_words_and_case_makes_no_difference():
    ideographs, upper, lower = hash_words(["\u4e16\u754c abc", "ABC_1", "abc_1"])
    assert len(ideographs) == 3
    assert (upper == lower).all()
