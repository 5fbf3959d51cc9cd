"""What a metric is, and which there are.

A metric of another package is an entry point of the group `agentworld.metrics`.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from agentworld.domains.base import Domain
from agentworld.kinds import Kinds

Metric = Callable[[Domain, str, str], float | None]
"""The value of a prediction, given its domain and the truth; null where the truth has none. The
truth itself has 1."""

EMBEDDING = "embedding"
"""A metric that needs a model, which a recipe names."""

_KINDS = Kinds[Metric](
    group="agentworld.metrics",
    noun="metric",
    attribute="METRIC",
    modules={
        "exact_match": "agentworld.evaluate.metrics.exact_match",
        "json_keys": "agentworld.evaluate.metrics.json_keys",
        "json_values": "agentworld.evaluate.metrics.json_values",
        "normalised": "agentworld.evaluate.metrics.normalised",
        "rouge_l": "agentworld.evaluate.metrics.rouge_l",
        "rule": "agentworld.evaluate.metrics.rule",
        "token_f1": "agentworld.evaluate.metrics.token_f1",
    },
)


def metric_of(name: str) -> Metric:
    """The metric of this name; raises InputError where there is none."""
    return _KINDS.find(name)


def metric_names() -> list[str]:
    """Those that need no model, in alphabetical order."""
    return _KINDS.names


def open_metrics(names: Iterable[str], embedding_model: str | None) -> dict[str, Metric]:
    """By name; the embedding is left out where no folder has a model for it.

    Raises InputError for a metric that is not there, and for a folder without a model.
    """
    names = list(names)
    metrics = {name: metric_of(name) for name in names if name != EMBEDDING}
    if EMBEDDING in names and embedding_model:
        from agentworld.evaluate.metrics.embedding import EmbeddingSimilarity  # loads torch

        metrics[EMBEDDING] = EmbeddingSimilarity(Path(embedding_model))
    return metrics
