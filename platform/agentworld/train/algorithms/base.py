"""The settings of an algorithm of group RL, and the table of algorithms.

Another package adds an algorithm by an entry point of the group `agentworld.algorithms`.
"""

from typing import Literal, NamedTuple

from agentworld.kinds import Kinds


class Algorithm(NamedTuple):
    """How a policy learns from a group of rollouts of one prompt."""

    importance: Literal["token", "sequence"]
    """The unit with one importance ratio."""
    clip_low: float
    """Ratios are clipped below 1 - clip_low."""
    clip_high: float
    """Ratios are clipped above 1 + clip_high."""
    loss: str = "grpo"
    """How the losses of tokens are averaged, as TRL names it."""


_KINDS = Kinds[Algorithm](
    group="agentworld.algorithms",
    noun="algorithm",
    attribute="ALGORITHM",
    modules={
        "grpo": "agentworld.train.algorithms.grpo",
        "gspo": "agentworld.train.algorithms.gspo",
    },
)


def algorithm_of(name: str) -> Algorithm:
    """The algorithm of this name; raises InputError for an unknown name."""
    return _KINDS.find(name)
