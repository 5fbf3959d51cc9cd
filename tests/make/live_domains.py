"""A domain with a scripted environment, and its registration in the table of domains."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from agentworld.domains import live
from agentworld.domains.base import Start
from agentworld.domains.live import Environment, Explorer, LiveSettings, Observation
from agentworld.domains.programs import Program
from agentworld.records.task import Task
from make import records


class ScriptedEnvironment:
    """Responds with a function's results; an exception as an observation is raised."""

    def __init__(self, answer: Callable[[str], Observation | Exception]) -> None:
        self.num_steps = 0
        self.is_open = True
        self.is_right: bool | None = None
        self.state_fields: dict[str, str] | None = None
        self._answer = answer

    async def reset(self, task: Task) -> Start:
        return Start(domain=task.domain, text=task.initial_state)

    async def step(self, action: str) -> Observation:
        self.num_steps += 1
        observation = self._answer(action)
        if isinstance(observation, Exception):
            raise observation
        return observation

    async def state(self) -> str:
        return f"{self.num_steps} steps"

    async def fields(self) -> dict[str, str] | None:
        return self.state_fields

    async def check(self, _: Task) -> bool | None:
        return self.is_right


class ScriptedDomain:
    """Its environments echo the action if no response is given."""

    def __init__(
        self,
        answer: Callable[[str], Observation | Exception] = Observation,
        launchers: frozenset[str] = frozenset(),
        name: str = "text",
        programs: tuple[Program, ...] = (),
    ) -> None:
        self.launchers = launchers
        self.programs = programs
        self.environments: list[ScriptedEnvironment] = []
        self.is_right: bool | None = None
        self._answer = answer
        self._name = name

    def check_available(self) -> None:
        pass

    def task(self, seed: int, *, held_out: bool, has_goal: bool = True) -> Task:  # noqa: ARG002
        return records.task(domain=self._name, seed=seed, id=f"{seed} {held_out}")

    def explorer(self, *_: object, num_turns: int, **__: object) -> Explorer:
        return CountingExplorer(num_turns)

    @asynccontextmanager
    async def open(self, _: LiveSettings) -> AsyncIterator[Environment]:
        environment = ScriptedEnvironment(self._answer)
        environment.is_right = self.is_right
        self.environments.append(environment)
        try:
            yield environment
        finally:
            environment.is_open = False


class CountingExplorer:
    """Takes a fixed number of actions, and stores the observations."""

    def __init__(self, num_turns: int) -> None:
        self.observations: list[Observation | None] = []
        self._num_turns = num_turns

    def act(self, observation: Observation | None) -> str | None:
        self.observations.append(observation)
        return (
            f"action {len(self.observations)}"
            if len(self.observations) <= self._num_turns
            else None
        )


def registered(monkeypatch: pytest.MonkeyPatch, name: str, domain: live.LiveDomain) -> None:
    """Adds a domain with environments to the table until the test ends."""
    monkeypatch.setitem(live._KINDS._modules, name, "of a test")
    monkeypatch.setitem(live._KINDS._loaded, name, domain)
