"""One explorer's episode in a live shell: it wanders, or it runs an errand."""

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from agentworld.domains.terminal.explorers import new_belief, run_errand, wander
from agentworld.domains.terminal.prompts import DOMAIN
from agentworld.domains.terminal.shell import LiveShell
from agentworld.domains.terminal.start import describe_files, make_files
from agentworld.domains.terminal.tasks import make_errand
from agentworld.domains.terminal.words import episode_words
from agentworld.errors import SandboxBroken
from agentworld.recipes.data import CollectRecipe
from agentworld.records.task import Task
from agentworld.records.trajectory import Trajectory, Turn
from agentworld.scoring.success import judge

_SEEDS_PER_RECIPE = 10_000_000
_MAX_ERRAND_TURNS = 10


class _Plan(NamedTuple):
    """What an explorer will do; its actions are made while it acts."""

    source: str
    seed: int
    files: dict[str, str]
    actions: Iterator[str]
    task: Task | None = None


def explore(
    recipe: CollectRecipe,
    episodes: Iterable[int],
    *,
    held_out: bool,
    open_shell: Callable[[], LiveShell] = LiveShell,
) -> list[Trajectory]:
    """The trajectories of these episodes; one that broke its sandbox is left out.

    Raises SandboxBroken when all of them did: then it is not the episodes that are broken.
    """
    recorded = []
    with open_shell() as shell:
        for number in episodes:
            plan = _plan(recipe, number, held_out=held_out)
            with suppress(SandboxBroken):
                turns = tuple(_act(shell, plan, with_state=recipe.record_state))
                recorded.append(_trajectory(plan, turns, held_out=held_out))
    if not recorded:
        raise SandboxBroken("every episode broke its sandbox; is the machine overloaded?")
    return recorded


def _plan(recipe: CollectRecipe, number: int, *, held_out: bool) -> _Plan:
    seed = recipe.seed * _SEEDS_PER_RECIPE + number
    rng = random.Random(f"explorer {seed} {held_out}")
    if rng.random() < recipe.errand_share:
        errand = make_errand(seed, held_out=held_out)
        steps = run_errand(new_belief(rng, errand.words, errand.files), errand.steps)
        return _Plan("errand", seed, errand.files, islice(steps, _MAX_ERRAND_TURNS), errand.task)
    words = episode_words(rng, held_out=held_out)
    files = make_files(rng, words)
    steps = wander(new_belief(rng, words, files), recipe.turns_per_episode)
    return _Plan("wanderer", seed, files, steps)


def _act(shell: LiveShell, plan: _Plan, *, with_state: bool) -> Iterator[Turn]:
    """The turns up to the action that closes the task, where there is a task."""
    shell.reset(plan.files)
    for action in plan.actions:
        observation = shell.step(action)
        state = shell.state() if with_state else ""
        yield Turn(action=action, observation=observation, state=state)
        if plan.task and judge(plan.task.success, action, observation) is not None:
            return


def _trajectory(plan: _Plan, turns: tuple[Turn, ...], *, held_out: bool) -> Trajectory:
    return Trajectory(
        domain=DOMAIN,
        source=plan.source,
        seed=plan.seed,
        held_out=held_out,
        initial_state=describe_files(plan.files),
        task=plan.task,
        turns=turns,
    )
