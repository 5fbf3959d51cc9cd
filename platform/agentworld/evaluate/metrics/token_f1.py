"""The tokens that prediction and truth share, in any order: F1 over bags of tokens."""

from collections import Counter

from agentworld.domains.base import Domain
from agentworld.evaluate.metrics.tokens import f1, tokens_of


def token_f1(domain: Domain, predicted: str, truth: str) -> float:
    """0 to 1."""
    predicted_counts = Counter(tokens_of(domain.normalise(predicted)))
    truth_counts = Counter(tokens_of(domain.normalise(truth)))
    return f1(
        (predicted_counts & truth_counts).total(), predicted_counts.total(), truth_counts.total()
    )


METRIC = token_f1
