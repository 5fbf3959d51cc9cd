"""Converts plain numbers to metric families of Prometheus' client library, for a scrape."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.utils import floatToGoString

from agentworld.serving.telemetry.counts import BOUNDS, Durations

_LE = [*map(floatToGoString, BOUNDS), "+Inf"]

Values = Mapping[tuple[str, ...], float]
"""Values by the values of the labels."""


def counter(
    name: str, documentation: str, labels: Sequence[str], values: Values
) -> CounterMetricFamily:
    """A counter."""
    family = CounterMetricFamily(name, documentation, labels=labels)
    for label_values, value in values.items():
        family.add_metric(label_values, value)
    return family


def gauge(
    name: str, documentation: str, labels: Sequence[str], values: Values
) -> GaugeMetricFamily:
    """A gauge."""
    family = GaugeMetricFamily(name, documentation, labels=labels)
    for label_values, value in values.items():
        family.add_metric(label_values, value)
    return family


def histogram(
    name: str,
    documentation: str,
    labels: Sequence[str],
    durations: Mapping[tuple[str, ...], Durations],
) -> HistogramMetricFamily:
    """A histogram."""
    family = HistogramMetricFamily(name, documentation, labels=labels)
    for label_values, value in durations.items():
        buckets = list(zip(_LE, accumulate(value.counts), strict=True))
        family.add_metric(label_values, buckets, value.sum)
    return family
