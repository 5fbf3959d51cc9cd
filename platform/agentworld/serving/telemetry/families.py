"""From plain numbers to the metrics of Prometheus' client library, at the time of a scrape."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.utils import floatToGoString

# In seconds: from a step that no engine was asked for to one that waited long for its turn.
_BOUNDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1, 2.5, 5, 10, 25, 60, 120),
)
_LE = [*map(floatToGoString, _BOUNDS), "+Inf"]


class Durations:
    """How often something took so long."""

    __slots__ = ("_counts", "_sum")

    def __init__(self) -> None:
        # Of those within each bound and not within the one before it.
        self._counts = [0] * len(_LE)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        """Counts one more."""
        self._counts[bisect_left(_BOUNDS, seconds)] += 1
        self._sum += seconds

    def add_to(self, family: HistogramMetricFamily, labels: Sequence[str]) -> None:
        """Tells the family of all under these labels."""
        buckets = list(zip(_LE, accumulate(self._counts), strict=True))
        family.add_metric(labels, buckets, self._sum)


Values = Mapping[tuple[str, ...], float]
"""By the values of the labels."""


def counter(name: str, about: str, labels: Sequence[str], values: Values) -> CounterMetricFamily:
    """What only grows."""
    family = CounterMetricFamily(name, about, labels=labels)
    for label_values, value in values.items():
        family.add_metric(label_values, value)
    return family


def gauge(name: str, about: str, labels: Sequence[str], values: Values) -> GaugeMetricFamily:
    """What is so now."""
    family = GaugeMetricFamily(name, about, labels=labels)
    for label_values, value in values.items():
        family.add_metric(label_values, value)
    return family


def histogram(
    name: str, about: str, labels: Sequence[str], durations: Mapping[tuple[str, ...], Durations]
) -> HistogramMetricFamily:
    """How long things took."""
    family = HistogramMetricFamily(name, about, labels=labels)
    for label_values, each in durations.items():
        each.add_to(family, label_values)
    return family
