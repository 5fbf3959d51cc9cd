"""Selects one of a teacher's answers to a prompt (Qwen-AgentWorld section 3.3).

The paper: a judge scores each answer, comparison in pairs picks the winner, and a winner under a
threshold discards the prompt. It does not report how many comparisons there are, or what a tie is.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

from agentworld.scoring.verdict import Preference


class ScoredRollout(NamedTuple):
    """A usable answer of the teacher."""

    thought: str
    observation: str
    score: float
    """The judge's mean score, of 1 to 5."""


Compare = Callable[[str, str], Preference]
"""Which of two observations is better; raises JudgeError without a verdict."""


def select(
    rollouts: Sequence[ScoredRollout], threshold: float, compare: Compare | None
) -> ScoredRollout | None:
    """The winner; null if its score is under the threshold.

    Each pair is compared in both orders, as a judge may prefer the first (arXiv 2306.05685). Most
    wins win, then the higher score, then the earlier rollout. Without `compare` the score decides.
    Raises JudgeError if a comparison has no verdict: no other rollout wins by a failure.
    """
    if max(rollout.score for rollout in rollouts) < threshold:
        return None  # no winner would reach it
    wins = _count_wins(rollouts, compare) if compare else [0] * len(rollouts)
    best = max(range(len(rollouts)), key=lambda place: (wins[place], rollouts[place].score, -place))
    return rollouts[best] if rollouts[best].score >= threshold else None


def _count_wins(rollouts: Sequence[ScoredRollout], compare: Compare) -> list[int]:
    wins = [0] * len(rollouts)
    for pair in combinations(range(len(rollouts)), 2):
        for first, second in (pair, pair[::-1]):
            texts = rollouts[first].observation, rollouts[second].observation
            preference = compare(*texts) if texts[0] != texts[1] else "tie"
            wins[first] += preference == "A"
            wins[second] += preference == "B"
    return wins
