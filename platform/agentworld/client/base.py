"""The protocol of a world: agents use simulators and live environments in the same way."""

from typing import Protocol

from agentworld.records.task import Task
from agentworld.records.trajectory_log import Sampled


class WorldStep(Protocol):
    """The result of a step."""

    @property
    def observation(self) -> str:
        """The text that the agent sees."""
        ...

    @property
    def reward(self) -> float | None:
        """Null while a task is open."""
        ...

    @property
    def done(self) -> bool:
        """The episode has ended."""
        ...

    @property
    def truncated(self) -> bool:
        """The turn limit ended the episode."""
        ...

    @property
    def low_confidence(self) -> bool:
        """The observation is uncertain; a trainer masks the step."""
        ...


class World(Protocol):
    """Raises a typed error if it cannot answer; never invents an observation."""

    async def reset(self, task: Task) -> str:
        """Begins an episode; returns its id."""
        ...

    async def step(self, episode: str, action: str, sampled: Sampled | None = None, /) -> WorldStep:
        """Takes the next action of an episode; `sampled` is the policy's full output."""
        ...
