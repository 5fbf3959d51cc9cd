"""A trajectory with the turns that are to be predicted from all that came before them.

`history + action -> observation` (Qwen-AgentWorld section 2.3, equation 1), for several
turns of one trajectory at once where a pool trains on whole episodes.
"""

from typing import Literal

from agentworld.records.base import Record
from agentworld.records.trajectory import Exchange, PromptParts

Pool = Literal["cpt", "sft", "rl", "held_out"]
POOLS: tuple[Pool, ...] = ("cpt", "sft", "rl", "held_out")


class SampleTurn(Exchange):
    """A turn, with what data preparation says of it."""

    tags: tuple[str, ...] = ()
    """What its domain says of it, in alphabetical order."""
    target: bool
    """The loss counts this turn (turn-level masking, section 3.2 and table 3)."""


class Sample(Record):
    """One row of a data set's pool; its identity is the trajectory's digest and its targets."""

    trajectory: str
    """Digest of the trajectory that it was cut from."""
    domain: str
    prompt: PromptParts
    turns: tuple[SampleTurn, ...]

    @property
    def targets(self) -> tuple[int, ...]:
        """The places of the turns that are to be predicted."""
        return tuple(index for index, turn in enumerate(self.turns) if turn.target)
