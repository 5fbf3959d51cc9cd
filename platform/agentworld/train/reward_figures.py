"""A step's figures of rewards: answers without a reward, and the judge's usage."""

import math
from collections.abc import Mapping, Sequence

from agentworld.records.endpoint_usage import EndpointUsage
from agentworld.train.distributed import num_ranks

_HOLES = "holes"
_OF_JUDGE = {
    "judge_answers": "num_answers",
    "judge_prompt_tokens": "num_prompt_tokens",
    "judge_tokens": "num_tokens",
    "judge_dollars": "dollars",
}
REWARD_FIGURES = (_HOLES, *_OF_JUDGE)
"""The names under which a trainer logs them."""


def reward_figures(
    rewards: Sequence[float | None], usage: EndpointUsage | None
) -> dict[str, float]:
    """The figures of this process's answers, for a trainer that logs the mean over all processes.

    An unknown number is NaN, which the trainer logs as null. A step without a judge has no `usage`.
    """
    figures = {_HOLES: float(sum(reward is None for reward in rewards))}
    for name, field in _OF_JUDGE.items() if usage else ():
        value = getattr(usage, field)
        figures[name] = math.nan if value is None else float(value)
    return {name: value * num_ranks() for name, value in figures.items()}


def reward_totals(logs: Sequence[Mapping[str, float | None]]) -> dict[str, float]:
    """The sums over the steps that a trainer logged; a figure with an unknown step is left out."""
    totals = {}
    for name in REWARD_FIGURES:
        values = [entry[name] for entry in logs if name in entry]
        known_values = [value for value in values if value is not None]
        if values and len(known_values) == len(values):
            totals[name] = sum(known_values)
    return totals
