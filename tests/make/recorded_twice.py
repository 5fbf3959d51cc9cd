"""Live episodes that are recorded twice with the same actions, in any domain with environments."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import NamedTuple

from agentworld.domains.base import Start
from agentworld.domains.explorers import ScriptedExplorer
from agentworld.domains.live import Environment, Explorer, live_domain, open_environment
from agentworld.errors import EnvironmentBroken
from agentworld.records.task import Task

NUM_TURNS = 12
_COMMANDS = (
    "date",
    "echo kolu > a.txt",
    "ls -l",
    "mktemp",
    "sleep 30 &",
    "cat a.txt; date '+%Y-%m-%d %H:%M:%S'",
)


def _calls(*calls: tuple[str, Mapping[str, object]]) -> tuple[str, ...]:
    return tuple(json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls)


def _keys(*commands: str) -> tuple[str, ...]:
    return tuple(json.dumps([{"keystrokes": f"{text}\n", "duration": 1.0}]) for text in commands)


RUNTIME_ACTIONS: Mapping[str, Sequence[str]] = {
    "mcp": _calls(
        ("add_item", {"item": "kolu", "price": 3, "stock": 9}),
        ("create_order", {"item": "kolu", "quantity": 2}),
        ("list_orders", {}),
        ("get_order", {"order": 1}),
    ),
    "shell": _COMMANDS,
    "terminal": _keys(*_COMMANDS, "clear", "date", "jobs -l", "ps"),
}
"""Actions whose output differs in every run: times, names of temporary files, processes."""
RUNTIME_FORMS: Mapping[str, Sequence[str]] = {
    "mcp": ("time", "id", "path"),
    "shell": ("time", "clock", "name", "process"),
    "terminal": ("time", "clock", "name", "process", "row"),
}
"""The forms of each domain, by the names of `changed_observations.FORMS`."""


class DoubleTurn(NamedTuple):
    """An action, and its observation in each of two runs."""

    action: str
    first: str
    second: str
    stale: str | None
    """Its observation without an earlier action that changed the state; null if no earlier action
    was left out.
    """


Episode = list[DoubleTurn]


def patient(action: str) -> str:
    """A terminal's action that waits for its programs, however slow the machine is."""
    return re.sub(r'"duration": [\d.]+', '"duration": 60', action)


class _PatientEnvironment:
    """An environment whose actions are made `patient`."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def __getattr__(self, name: str) -> object:
        return getattr(self._environment, name)

    async def step(self, action: str) -> object:
        return await self._environment.step(patient(action))


class _Plan(NamedTuple):
    seed: int
    task: Task
    actions: Sequence[str] = ()
    """If empty, an explorer chooses them."""


class _Step(NamedTuple):
    action: str
    observation: str
    changes_state: bool


async def record_twice(
    name: str, num_episodes: int, at_once: int = 1, *, patiently: bool = False
) -> list[Episode]:
    """Explorers' episodes, a third of which pursue a task, and one with `RUNTIME_ACTIONS`.

    An episode that breaks its environment in one of its runs is left out. `patiently` makes each
    action as `patient` does.
    """
    plans = [_plan(name, seed, has_goal=seed % 3 == 0) for seed in range(num_episodes)]
    explore = _plan(name, num_episodes, has_goal=False)
    plans += [explore._replace(actions=RUNTIME_ACTIONS[name])] if name in RUNTIME_ACTIONS else []
    remaining = iter(plans)
    episodes: dict[int, Episode] = {}

    async def work() -> None:
        async with open_environment(name) as opened:
            environment = _PatientEnvironment(opened) if patiently else opened
            for plan in remaining:
                with suppress(EnvironmentBroken):
                    episodes[plan.seed] = await _record(name, environment, plan)

    await asyncio.gather(*(work() for _ in range(at_once)))
    return [episodes[seed] for seed in sorted(episodes)]


def _plan(name: str, seed: int, *, has_goal: bool) -> _Plan:
    return _Plan(seed, live_domain(name).task(seed, held_out=False, has_goal=has_goal))


async def _record(name: str, environment: Environment, plan: _Plan) -> Episode:
    rng = Random(f"twice {name} {plan.seed}")

    def explorer(start: Start) -> Explorer:
        if plan.actions:
            return _script(plan.actions)
        pursues_task = bool(plan.task.instruction)
        options = {"held_out": False, "pursues_task": pursues_task, "num_turns": NUM_TURNS}
        return live_domain(name).explorer(rng, start, plan.task, **options)

    first = await _play(environment, plan.task, explorer)
    actions = [step.action for step in first]
    second = await _play(environment, plan.task, lambda _: _script(actions))
    stale: list[str | None] = [None] * len(actions)
    if indices := [index for index, step in enumerate(first[:-1]) if step.changes_state]:
        index = rng.choice(indices)
        remaining = actions[:index] + actions[index + 1 :]
        replay = await _play(environment, plan.task, lambda _: _script(remaining))
        stale[index + 1 :] = [step.observation for step in replay[index:]]
    rows = zip(first, second, stale, strict=True)
    return [DoubleTurn(a.action, a.observation, b.observation, old) for a, b, old in rows]


def _script(actions: Sequence[str]) -> Explorer:
    return ScriptedExplorer(iter(actions), len(actions))


async def _play(
    environment: Environment, task: Task, choose: Callable[[Start], Explorer]
) -> list[_Step]:
    explorer = choose(await environment.reset(task))
    fields, observation, steps = await environment.fields(), None, list[_Step]()
    while (action := explorer.act(observation)) is not None:
        observation = await environment.step(action)
        before, fields = fields, await environment.fields()
        steps.append(_Step(action, observation.text, fields != before))
    return steps
