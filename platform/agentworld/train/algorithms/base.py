"""What distinguishes an algorithm of group RL, and which there are.

An algorithm of another package is an entry point of the group `agentworld.algorithms`.
"""

from typing import Literal, NamedTuple

from agentworld.kinds import Kinds


class Algorithm(NamedTuple):
    """How a policy learns from a group of attempts at one prompt."""

    importance: Literal["token", "sequence"]
    """What has one importance ratio."""
    clip_low: float
    """A ratio counts at least 1 less this."""
    clip_high: float
    """A ratio counts at most 1 and this."""
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
    """The algorithm of this name; raises InputError where there is none."""
    return _KINDS.find(name)
