"""Statistics of measurements: pure arithmetic."""

import math
from collections.abc import Sequence
from itertools import accumulate
from statistics import median
from typing import NamedTuple

_MISS = 1 / 32


class Spread(NamedTuple):
    """A figure over several rounds; the true median is between `low` and `high` with 97 %.

    For six rounds, these are the lowest and the highest (1 - 2 / 2**6).
    """

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """The median of at least one round, with a distribution-free interval."""
    ordered = sorted(values)
    outside = _num_outside(len(ordered))
    return Spread(median(ordered), ordered[outside], ordered[-1 - outside])


def _num_outside(num_values: int) -> int:
    """The number of values outside the interval on each side; few values allow none."""
    # Of the 2**n ways in which values are distributed around the median, those with at most k on
    # one side: the interval that leaves out k values on each side misses it in twice them.
    ways = accumulate(math.comb(num_values, k) for k in range(num_values))
    return max(0, sum(2 * way <= _MISS * 2**num_values for way in ways) - 1)


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> Spread:
    """Round by round, because adjacent rounds share the machine's noise."""
    return spread([a / b for a, b in zip(numerators, denominators, strict=True)])


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
