"""A scripted world for tests of training, without a simulator."""

from collections.abc import Callable
from typing import NamedTuple

from agentworld.errors import SimulatorError
from agentworld.records.task import Task
from agentworld.records.trajectory_log import Sampled


class StepResult(NamedTuple):
    """A response of the scripted world."""

    observation: str = "kolmir\n[0] ~"
    reward: float | None = None
    done: bool = False
    truncated: bool = False
    low_confidence: bool = False


class ScriptedWorld:
    """Ends every episode at its third step; fails given episodes, the `shut` ones before they
    begin. Its confidence is low for the `unsure` steps, by task and number.
    """

    def __init__(
        self,
        failing: frozenset[str] = frozenset(),
        shut: frozenset[str] = frozenset(),
        reward: Callable[[str], float] = lambda _action: 1.0,
        unsure: Callable[[str, int], bool] = lambda _task, _step: False,
    ) -> None:
        self.failing = failing
        self.shut = shut
        self.reward = reward
        self.unsure = unsure
        self.steps: dict[str, int] = {}
        self.num_episodes = 0
        self.sampled: list[Sampled | None] = []

    async def reset(self, task: Task) -> str:
        if task.id in self.shut:
            raise SimulatorError(f"no room for {task.id}")
        self.num_episodes += 1
        episode = f"{task.id} {self.num_episodes}"
        self.steps[episode] = 0
        return episode

    async def step(
        self, episode: str, action: str, sampled: Sampled | None = None, /
    ) -> StepResult:
        self.sampled.append(sampled)
        self.steps[episode] += 1
        task, _, _ = episode.partition(" ")
        if task in self.failing:
            raise SimulatorError(f"no answer to {action!r}")
        number = self.steps[episode]
        reward = self.reward(action) if number == 3 else None
        return StepResult(reward=reward, done=number == 3, low_confidence=self.unsure(task, number))
