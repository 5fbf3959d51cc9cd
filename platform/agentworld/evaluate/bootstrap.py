"""Means with bootstrap intervals.

Values within an episode depend on each other, so whole episodes are resampled.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agentworld.records.report import Estimate

_COVERAGE = (2.5, 97.5)
_DRAWS_AT_ONCE = 1 << 20

Values = Sequence[Sequence[float | None]]
"""By episode, its values; null is a hole."""


def estimate(values: Values, num_resamples: int, seed: int) -> Estimate:
    """The mean of all values with its 95 % interval; raises ValueError without any value."""
    episodes = [[value for value in episode if value is not None] for episode in values]
    sums = np.array([sum(episode) for episode in episodes], dtype=float)
    counts = np.array([len(episode) for episode in episodes], dtype=float)
    num = int(counts.sum())
    if num == 0:
        raise ValueError("there is no value to estimate a mean from")
    low, high = np.percentile(_resample(sums, counts, num_resamples, seed), _COVERAGE)
    return Estimate(
        mean=float(sums.sum() / num),
        low=float(low),
        high=float(high),
        num=num,
        holes=sum(map(len, values)) - num,
    )


def estimate_difference(after: Values, before: Values, num_resamples: int, seed: int) -> Estimate:
    """The mean of `after - before`, value by value; a hole in either is a hole."""
    episodes = zip(after, before, strict=True)
    return estimate([_differences(*episode) for episode in episodes], num_resamples, seed)


def _differences(
    after: Sequence[float | None], before: Sequence[float | None]
) -> list[float | None]:
    pairs = zip(after, before, strict=True)
    return [None if a is None or b is None else a - b for a, b in pairs]


def _resample(
    sums: NDArray[np.float64], counts: NDArray[np.float64], num_resamples: int, seed: int
) -> NDArray[np.float64]:
    """The mean of each resample."""
    rng = np.random.default_rng(seed)
    rows = max(1, _DRAWS_AT_ONCE // len(sums))
    resampled_means = []
    for first in range(0, num_resamples, rows):
        indices = rng.integers(len(sums), size=(min(rows, num_resamples - first), len(sums)))
        num = counts[indices].sum(axis=1)
        resampled_means.append(sums[indices].sum(axis=1)[num > 0] / num[num > 0])
    return np.concatenate(resampled_means)
