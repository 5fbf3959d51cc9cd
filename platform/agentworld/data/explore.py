"""Plays episodes in a live environment; in each, an explorer explores or pursues a task."""

import random
from collections.abc import Iterable
from contextlib import AsyncExitStack, suppress
from typing import NamedTuple

from agentworld.domains.base import Start, domain_of
from agentworld.domains.live import (
    Environment,
    LiveSettings,
    Observation,
    live_domain,
    open_environment,
)
from agentworld.domains.state_fields import Fields, count_changes
from agentworld.errors import EnvironmentBroken, InputError
from agentworld.recipes.data import CollectRecipe
from agentworld.records.task import Task
from agentworld.records.trajectory import Trajectory, Turn

_SEEDS_PER_RECIPE = 10_000_000
_MAX_TASK_TURNS = 10


class _Plan(NamedTuple):
    """An episode before it begins."""

    domain: str
    task: Task
    rng: random.Random
    pursues_task: bool
    held_out: bool


class _Play(NamedTuple):
    """An episode that was played."""

    start: Start
    turns: tuple[Turn, ...]


async def explore(
    recipe: CollectRecipe, episodes: Iterable[int], *, held_out: bool
) -> list[Trajectory]:
    """The trajectories of these episodes; an episode that broke its environment is left out.

    Raises EnvironmentBroken if all of them did, because then the environment itself is broken.
    """
    trajectories = []
    options = recipe.options if recipe.trajectories is None else {}  # else an importer's
    settings = LiveSettings(options=options)
    environments: dict[str, Environment] = {}
    async with AsyncExitStack() as stack:
        for number in episodes:
            plan = _plan(recipe, number, held_out=held_out)
            if plan.domain not in environments:
                environments[plan.domain] = await stack.enter_async_context(
                    open_environment(plan.domain, settings)
                )
            with suppress(EnvironmentBroken):
                play = await _play(environments[plan.domain], plan, recipe)
                trajectories.append(_trajectory(plan, play))
    if not trajectories:
        raise EnvironmentBroken("every episode broke its environment; is the machine overloaded?")
    return trajectories


def collected_domains(recipe: CollectRecipe) -> list[str]:
    """The domains that are explored; raises InputError if the recipe names none."""
    if not recipe.weights:
        raise InputError(
            "the recipe names neither collect.domain, whose environments are explored, nor"
            " collect.trajectories; set one of them"
        )
    return sorted(recipe.weights)


def _plan(recipe: CollectRecipe, number: int, *, held_out: bool) -> _Plan:
    seed = recipe.seed * _SEEDS_PER_RECIPE + number
    names = collected_domains(recipe)
    weights = [recipe.weights[name] for name in names]
    (name,) = random.Random(f"domain {seed} {held_out}").choices(names, weights)
    rng = random.Random(f"explorer {seed} {held_out}")
    pursues_task = rng.random() < recipe.task_share
    task = live_domain(name).task(seed, held_out=held_out, has_goal=pursues_task)
    return _Plan(name, task, rng, pursues_task, held_out)


async def _play(environment: Environment, plan: _Plan, recipe: CollectRecipe) -> _Play:
    """Plays an episode; an episode that pursues a task ends with the action that closes it."""
    domain = domain_of(plan.domain)
    start = await environment.reset(plan.task)
    explorer = live_domain(plan.domain).explorer(
        plan.rng,
        start,
        plan.task,
        held_out=plan.held_out,
        pursues_task=plan.pursues_task,
        num_turns=_MAX_TASK_TURNS if plan.pursues_task else recipe.turns_per_episode,
    )
    turns: list[Turn] = []
    observation: Observation | None = None
    fields = await _fields(environment, plan)
    while (action := explorer.act(observation)) is not None:
        observation = await environment.step(action)
        before, fields = fields, await _fields(environment, plan)
        turn = Turn(
            action=action,
            observation=observation.text,
            state=await environment.state() if recipe.record_state else None,
            num_changed=count_changes(before, fields),
        )
        turns.append(turn)
        is_closed = (
            plan.pursues_task and domain.outcome(plan.task, action, observation.text) is not None
        )
        if observation.done or is_closed:
            break
    return _Play(start, tuple(turns))


async def _fields(environment: Environment, plan: _Plan) -> Fields | None:
    """Evaluations alone look at changes of the state, and to read a state can take half a step."""
    return await environment.fields() if plan.held_out else None


def _trajectory(plan: _Plan, play: _Play) -> Trajectory:
    return Trajectory(
        domain=plan.domain,
        source="task-explorer" if plan.pursues_task else "random-explorer",
        seed=plan.task.seed,
        held_out=plan.held_out,
        initial_state=play.start.text,
        tools=play.start.tools,
        task=plan.task if plan.pursues_task else None,
        turns=play.turns,
    )
