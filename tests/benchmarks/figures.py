"""What a benchmark makes of its measurements: pure arithmetic."""

import math
from collections.abc import Sequence
from itertools import accumulate
from statistics import median
from typing import NamedTuple

_MISS = 1 / 32


class Spread(NamedTuple):
    """A figure over several rounds; between `low` and `high` lies the true median with 97 %.

    Of six rounds these are the lowest and the highest (1 - 2 / 2**6).
    """

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """The median, and an interval for it whatever the distribution is; of at least one round."""
    ordered = sorted(values)
    outside = _num_outside(len(ordered))
    return Spread(median(ordered), ordered[outside], ordered[-1 - outside])


def _num_outside(num_values: int) -> int:
    """How many values may lie on each side of the interval; few values allow none."""
    # Of the 2**n ways in which values fall on either side of the median, those in which at most
    # k fall on one: the interval that leaves out k values on each side misses it in twice them.
    ways = accumulate(math.comb(num_values, k) for k in range(num_values))
    return max(0, sum(2 * each <= _MISS * 2**num_values for each in ways) - 1)


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Round over round: neighbours in time share the machine's noise."""
    return spread([a / b for a, b in zip(ours, theirs, strict=True)])


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
