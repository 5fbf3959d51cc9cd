"""What a benchmark makes of its measurements: pure arithmetic."""

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple


class Spread(NamedTuple):
    """A figure over several rounds.

    From the lowest to the highest of six rounds lies the true median with 97 % (1 - 2 / 2**6).
    """

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """The median, the lowest and the highest of the rounds."""
    return Spread(median(values), min(values), max(values))


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Round over round: neighbours in time share the machine's noise."""
    return spread([a / b for a, b in zip(ours, theirs, strict=True)])


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
