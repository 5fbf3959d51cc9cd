"""The rubric: a predicted observation gets a score from 1 to 5 in each of five dimensions.

The dimensions are those of Qwen-AgentWorld section 4.2. A domain states the prompt of a judge, and
the rules that score without a judge. The rules count only what agrees with the truth. Text that the
truth does not contain, such as praise of the prediction, can lower a score and never raises it.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

BEST = 5
_TO_REWARD = 5


class RubricScore(NamedTuple):
    """1 is very poor and 5 excellent; 0 marks a dimension without a score."""

    format: int
    """The form of an observation."""
    factuality: int
    """The true lines of output, and no others."""
    consistency: int
    """It agrees with the earlier turns."""
    realism: int
    """It invents nothing, and shows nothing if the environment shows nothing."""
    quality: int
    """It is complete, and not longer than the truth."""

    @property
    def mean(self) -> float:
        """The mean of the dimensions that have a score."""
        scores = [value for value in self if value > 0]
        return sum(scores) / len(scores)

    @property
    def reward(self) -> float:
        """5 to 25 (section 3.4)."""
        return self.mean * _TO_REWARD


class Rubric(NamedTuple):
    """How a domain's observations are scored."""

    judge_prompt: str
    """The instruction of a judge that sees history, action, prediction and truth."""
    score_by_rules: Callable[[str, str], RubricScore]
    """The scores of a prediction, given the truth."""


def grade(share: float) -> int:
    """A share of 0 to 1 as a score."""
    return 1 + round((BEST - 1) * share)


def score_lines(
    predicted: Iterable[str], truth: Iterable[str], *, format_score: int = 0, consistency: int = 0
) -> RubricScore:
    """The dimensions of content by the lines and words that agree; the others as given.

    A dimension of 0 is left out.
    """
    predicted, truth = list(predicted), list(truth)
    return RubricScore(
        format=format_score,
        factuality=grade(line_agreement(predicted, truth)),
        consistency=consistency,
        realism=grade(word_precision(predicted, truth)),
        quality=grade(word_coverage(predicted, truth)),
    )


def line_agreement(predicted: Iterable[str], truth: Iterable[str]) -> float:
    """F1 over lines, in any order; 1 where both have none."""
    predicted_counts, truth_counts = Counter(predicted), Counter(truth)
    if not predicted_counts and not truth_counts:
        return 1.0
    return (
        2
        * (predicted_counts & truth_counts).total()
        / (predicted_counts.total() + truth_counts.total())
    )


def word_precision(predicted: Iterable[str], truth: Iterable[str]) -> float:
    """Share of the predicted words that are true; if there are none, 1 if the truth has none."""
    predicted_words, truth_words = _count_words(predicted), _count_words(truth)
    if not predicted_words:
        return float(not truth_words)
    return (predicted_words & truth_words).total() / predicted_words.total()


def word_coverage(predicted: Iterable[str], truth: Iterable[str]) -> float:
    """The number of words that both have, divided by the number of words of the longer one."""
    predicted_words, truth_words = _count_words(predicted), _count_words(truth)
    longer = max(predicted_words.total(), truth_words.total())
    return (predicted_words & truth_words).total() / longer if longer else 1.0


def _count_words(lines: Iterable[str]) -> Counter[str]:
    return Counter(word for line in lines for word in line.split())
