"""Live environments as a world, for the validation of an agent; never for its training."""

import secrets
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import NamedTuple

from agentworld.domains.base import Domain, domain_of
from agentworld.domains.live import (
    DEFAULT_SETTINGS,
    Environment,
    LiveSettings,
    open_environment,
)
from agentworld.errors import NotFound
from agentworld.records.task import Task
from agentworld.records.trajectory_log import Sampled
from agentworld.scoring.success import outcome


class LiveStep(NamedTuple):
    """The observation, with the fields of a simulator's step."""

    observation: str
    reward: float | None
    done: bool
    truncated: bool
    low_confidence: bool = False
    """Always false, because a live observation is true."""


@dataclass
class _Episode:
    task: Task
    domain: Domain
    environment: Environment
    resources: AsyncExitStack
    num_steps: int = 0


class LiveWorld:
    """Opens a fresh environment for each episode; `num_steps` counts all actions, failed ones
    included. The transcript's rule decides about success, as in a simulator. The state must show it
    too, which the environment reads out of the agent's reach; `num_disagreements` counts the
    episodes whose state does not, and their reward is 0. A step raises EnvironmentBroken if its
    action ended the environment: then there is no observation, and the agent has ended the episode.
    """

    def __init__(self, domain: str, settings: LiveSettings = DEFAULT_SETTINGS) -> None:
        """`domain` is the domain of tasks that name none."""
        self.num_steps = 0
        self.num_disagreements = 0
        self._domain = domain
        self._settings = settings
        self._episodes: dict[str, _Episode] = {}

    async def reset(self, task: Task) -> str:
        """Opens an environment with the task's start."""
        name = task.domain or self._domain
        async with AsyncExitStack() as stack:
            environment = await stack.enter_async_context(open_environment(name, self._settings))
            await environment.reset(task)
            resources = stack.pop_all()
        episode = secrets.token_hex(8)
        self._episodes[episode] = _Episode(task, domain_of(name), environment, resources)
        return episode

    async def step(self, episode: str, action: str, _: Sampled | None = None, /) -> LiveStep:
        """Takes one action; raises NotFound if the episode has ended or does not exist."""
        if episode not in self._episodes:
            raise NotFound(f"no live episode {episode} is open; reset begins one")
        current = self._episodes[episode]
        current.num_steps += 1
        self.num_steps += 1
        done = True
        try:
            result, agree = await _act(current, action)
            self.num_disagreements += not agree
            done = result.done
        finally:
            if done:
                del self._episodes[episode]
                await current.resources.aclose()
        return result

    async def close(self) -> None:
        """Closes every environment."""
        while self._episodes:
            _, episode = self._episodes.popitem()
            await episode.resources.aclose()


async def _act(episode: _Episode, action: str) -> tuple[LiveStep, bool]:
    """The step, and whether the state agrees with the transcript's success."""
    task = episode.task
    observation = await episode.environment.step(action)
    ending = outcome(
        episode.domain, task, task.turn_limit, episode.num_steps, action, observation.text
    )
    agree = not ending.reward or await episode.environment.check(task) is not False
    reward = ending.reward if agree else 0.0
    if observation.done and not ending.done:  # the environment ended an open task
        return LiveStep(observation.text, 0.0, done=True, truncated=False), agree
    return LiveStep(observation.text, reward, ending.done, ending.truncated), agree
