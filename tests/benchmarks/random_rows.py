"""Rows of random tokens with the lengths of real episodes: a few are long."""

import numpy as np

from agentworld.train.encode import Row

_P95_OVER_P50 = 4


def random_rows(lengths: list[int], vocabulary_size: int) -> list[Row]:
    """All tokens are targets."""
    random = np.random.default_rng(0)
    return [
        Row(random.integers(vocabulary_size, size=n, dtype=np.int32), np.ones(n, dtype=np.bool_))
        for n in lengths
    ]


def log_normal_lengths(num: int, median: int, longest: int) -> list[int]:
    """A twentieth is four times as long as the median."""
    sigma = np.log(_P95_OVER_P50) / 1.645
    lengths = np.random.default_rng(0).lognormal(np.log(median), sigma, num)
    return [int(length) for length in lengths.clip(8, longest)]
