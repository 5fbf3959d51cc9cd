"""What a world is to an agent: a simulator and a live environment are driven alike."""

from typing import Protocol

from agentworld.records.task import Task
from agentworld.records.trajectory_log import Sampled


class WorldStep(Protocol):
    """What a world shows for an action."""

    @property
    def observation(self) -> str:
        """What an agent sees."""
        ...

    @property
    def reward(self) -> float | None:
        """Null while a task is open."""
        ...

    @property
    def done(self) -> bool:
        """The episode is over."""
        ...

    @property
    def truncated(self) -> bool:
        """Over because of the turn limit."""
        ...

    @property
    def low_confidence(self) -> bool:
        """The world is not sure of the observation; a trainer masks the step."""
        ...


class World(Protocol):
    """Raises a typed error where it cannot answer; never makes an observation up."""

    async def reset(self, task: Task) -> str:
        """Begins an episode; returns its id."""
        ...

    async def step(self, episode: str, action: str, sampled: Sampled | None = None, /) -> WorldStep:
        """Takes the episode's next action, which was cut out of what a policy sampled."""
        ...
