"""How many tokens prediction and truth share in the same order: ROUGE-L (Lin 2004), as F1."""

from collections.abc import Sequence

from agentworld.domains.base import Domain
from agentworld.evaluate.metrics.tokens import f1, tokens_of


def rouge_l(domain: Domain, predicted: str, truth: str) -> float:
    """0 to 1."""
    predicted_tokens, truth_tokens = (
        tokens_of(domain.normalise(predicted)),
        tokens_of(domain.normalise(truth)),
    )
    return f1(
        longest_common(predicted_tokens, truth_tokens), len(predicted_tokens), len(truth_tokens)
    )


def longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest common subsequence.

    A row of the table is one integer (Hyyrö 2004), so that two texts of 10,000 tokens take
    milliseconds.
    """
    positions: dict[str, int] = {}
    for position, token in enumerate(one):
        positions[token] = positions.get(token, 0) | 1 << position
    all_ones = (1 << len(one)) - 1
    row = all_ones
    for token in other:
        matches = row & positions.get(token, 0)
        row = (row + matches | row - matches) & all_ones
    return len(one) - row.bit_count()


METRIC = rouge_l
