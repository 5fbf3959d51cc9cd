"""Turn-level loss masking: most turns that teach little are masked (Qwen-AgentWorld table 3).

The paper's rules overlap, and the paper gives no order. Here the classes that are masked come first
(echo, boilerplate, transform), then the classes that are kept. A masked turn stays in the history
of later turns.
"""

import re
from typing import Literal, NamedTuple

from agentworld.data.hash_uniform import hash_uniform
from agentworld.recipes.data import MaskRecipe

TurnClass = Literal["echo", "boilerplate", "transform", "retrieval", "expansion", "action", "other"]

_WORD = re.compile(r"\w+")
_SHORT_WORDS = 8  # the paper's rule for `action` says "short" and no number


class Overlap(NamedTuple):
    """How an observation relates to its action, over sets of lower-cased words."""

    overlap: float
    """Share of the action's words that the observation holds."""
    novelty: float
    """Share of the observation's words that the action does not hold."""
    ratio: float
    """Characters of the observation for each of the action."""
    is_short: bool


def measure(action: str, observation: str) -> Overlap:
    """The quantities of the paper's table 3; no rule uses its Jaccard index."""
    action_words = set(_WORD.findall(action.lower()))
    observation_words = set(_WORD.findall(observation.lower()))
    return Overlap(
        overlap=len(action_words & observation_words) / max(1, len(action_words)),
        novelty=len(observation_words - action_words) / max(1, len(observation_words)),
        ratio=len(observation) / max(1, len(action)),
        is_short=len(observation_words) <= _SHORT_WORDS,
    )


def turn_class(action: str, observation: str) -> TurnClass:
    """The first class of table 3 whose rule holds."""
    overlap, novelty, ratio, is_short = measure(action, observation)
    if overlap >= 0.7 and novelty < 0.3:
        return "echo"
    if overlap >= 0.5 and novelty < 0.5:
        return "boilerplate"
    if novelty < 0.5 and ratio < 1:
        return "transform"
    if novelty >= 0.6 and ratio > 1:
        return "retrieval"
    if overlap >= 0.5 and novelty >= 0.5 and ratio > 1.5:
        return "expansion"
    if novelty >= 0.5 and (ratio <= 1 or is_short):
        return "action"
    return "other"


def is_kept(recipe: MaskRecipe, kind: TurnClass, seed: int, trajectory: str, turn: int) -> bool:
    """Whether the loss counts a turn of this class; drawn separately for each turn."""
    share: float = getattr(recipe, kind)
    return share >= 1 or hash_uniform(seed, "mask", trajectory, turn) < share
