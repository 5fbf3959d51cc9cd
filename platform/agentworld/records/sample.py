"""A trajectory with the turns to predict from their history.

`history + action -> observation` (Qwen-AgentWorld section 2.3, equation 1), for several turns of
one trajectory at once if a pool trains on whole episodes.
"""

from typing import Literal

from agentworld.records.base import Record
from agentworld.records.trajectory import Exchange, PromptParts

Pool = Literal["cpt", "sft", "rl", "held_out"]
POOLS: tuple[Pool, ...] = ("cpt", "sft", "rl", "held_out")


class SampleTurn(Exchange):
    """A turn with the annotations of data preparation."""

    tags: tuple[str, ...] = ()
    """The domain's tags, in alphabetical order."""
    target: bool
    """Whether the turn counts in the loss (turn-level masking, section 3.2 and table 3)."""


class Sample(Record):
    """One row of a data set's pool; it is identified by the trajectory's digest and its targets."""

    trajectory: str
    """The digest of the source trajectory."""
    domain: str
    prompt: PromptParts
    turns: tuple[SampleTurn, ...]

    @property
    def targets(self) -> tuple[int, ...]:
        """The indexes of the turns to predict."""
        return tuple(index for index, turn in enumerate(self.turns) if turn.target)
