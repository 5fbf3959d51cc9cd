"""The type of a metric, and the table of metrics.

Another package adds a metric by an entry point of the group `agentworld.metrics`.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from agentworld.domains.base import Domain
from agentworld.kinds import Kinds

Metric = Callable[[Domain, str, str], float | None]
"""The value of a prediction, given its domain and the truth; null if the truth has none.

An exact prediction has the value 1.
"""

EMBEDDING = "embedding"
"""The metric that needs a model, which a recipe names."""

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
    """The metric of this name; raises InputError for an unknown name."""
    return _KINDS.find(name)


def metric_names() -> list[str]:
    """The metrics that need no model, in alphabetical order."""
    return _KINDS.names


def open_metrics(names: Iterable[str], embedding_model: str | None) -> dict[str, Metric]:
    """Metrics by name, without the embedding if no folder has a model for it.

    Raises InputError for an unknown metric, and for a folder without a model.
    """
    names = list(names)
    metrics = {name: metric_of(name) for name in names if name != EMBEDDING}
    if EMBEDDING in names and embedding_model:
        from agentworld.evaluate.metrics.embedding import EmbeddingSimilarity  # loads torch

        metrics[EMBEDDING] = EmbeddingSimilarity(Path(embedding_model))
    return metrics
