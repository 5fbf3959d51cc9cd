"""What a metric is, and which there are.

A metric of another package is an entry point of the group `agentworld.metrics`.
"""

from collections.abc import Callable

from agentworld.domains.base import Domain
from agentworld.kinds import Kinds

Metric = Callable[[Domain, str, str], float | None]
"""The value of a prediction, given its domain and the truth; null where it has none."""

_KINDS = Kinds[Metric](
    group="agentworld.metrics",
    what="metric",
    attribute="METRIC",
    modules={
        "exact_match": "agentworld.evaluate.metrics.exact_match",
        "rule": "agentworld.evaluate.metrics.rule",
    },
)


def metric_of(name: str) -> Metric:
    """The metric of this name; raises InputError where there is none."""
    return _KINDS.find(name)
