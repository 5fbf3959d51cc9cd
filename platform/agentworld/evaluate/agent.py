"""The success rate of an agent in any world: a simulator or a live environment."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agentworld.client.base import World
from agentworld.domains.base import ActionError, Domain
from agentworld.engine.base import CompletionRequest, Engine
from agentworld.errors import EngineError, EnvironmentBroken, SimulatorError
from agentworld.evaluate.bootstrap import estimate, estimate_difference
from agentworld.evaluate.predict import OWN_FAILURES
from agentworld.recipes.serve import ValidateRecipe
from agentworld.records.base import Digest
from agentworld.records.progress import OnProgress
from agentworld.records.report import AgentScore, Estimate
from agentworld.records.simulator import Sampling
from agentworld.records.task import Task
from agentworld.records.trajectory import Turn
from agentworld.records.trajectory_log import Sampled
from agentworld.rendering.messages import agent_messages

_SEEDS_PER_RECIPE = 1_000_000


class Policy(NamedTuple):
    """The agent: a served model and its sampling."""

    engine: Engine
    sampling: Sampling
    weights: Digest | None = None


class EpisodeResult(NamedTuple):
    """The result of an agent's episode."""

    task: Task
    turns: tuple[Turn, ...]
    success: bool | None
    """Null is a hole: the outcome is unknown, by no fault of the agent."""
    problem: str = ""
    """Why it ended before the task did."""


def held_out_tasks(recipe: ValidateRecipe, task_of: Callable[[int], Task]) -> list[Task]:
    """The held-out tasks that every agent of a validation gets, in the same order.

    `task_of` is the held-out task of a seed.
    """
    first = recipe.seed * _SEEDS_PER_RECIPE
    return [task_of(first + number) for number in range(recipe.num_tasks)]


async def play(policy: Policy, domain: Domain, world: World, task: Task) -> EpisodeResult:
    """Plays one episode; the domain parses the policy's actions.

    An agent that says nothing, whose answer is truncated, or whose command breaks its sandbox has
    failed the task. If an engine or simulator fails, no sandbox can be opened, or the world is
    unsure of the last observation, the episode is a hole.
    """
    turns: list[Turn] = []
    try:
        episode = await world.reset(task)
    except (EngineError, SimulatorError, EnvironmentBroken) as error:
        return EpisodeResult(task, (), None, str(error))
    for _ in range(task.turn_limit):
        try:
            text = await _next_action(policy, task, turns)
            action = domain.parse_action(text)
            step = await world.step(episode, action, Sampled(text, policy.weights))
        except (ActionError, EnvironmentBroken) as error:
            return EpisodeResult(task, tuple(turns), False, str(error))
        except (EngineError, SimulatorError) as error:
            return EpisodeResult(task, tuple(turns), None, str(error))
        turns.append(Turn(action=action, observation=step.observation))
        if step.done and step.low_confidence:
            return EpisodeResult(
                task, tuple(turns), None, "the world is not sure of its last observation"
            )
        if step.done:
            return EpisodeResult(task, tuple(turns), bool(step.reward))
    return EpisodeResult(task, tuple(turns), False, "the turn limit")


async def play_all(
    policy: Policy,
    domain: Domain,
    world: World,
    tasks: Sequence[Task],
    on_progress: OnProgress,
    *,
    concurrency: int = 16,
) -> list[EpisodeResult]:
    """Plays an episode for each task, `concurrency` at once.

    Raises EngineError if all of them are holes.
    """
    limiter = asyncio.Semaphore(concurrency)
    done = 0

    async def play_task(task: Task) -> EpisodeResult:
        nonlocal done
        async with limiter:
            result = await play(policy, domain, world, task)
        done += 1
        on_progress(done, len(tasks))
        return result

    results = await asyncio.gather(*map(play_task, tasks))
    if all(episode.success is None for episode in results):
        raise EngineError(f"none of {len(tasks)} episodes could be played: {results[0].problem}")
    return results


def agent_score(
    simulated: Sequence[EpisodeResult], live: Sequence[EpisodeResult], recipe: ValidateRecipe
) -> AgentScore:
    """Success in the simulator and live, and live by family of tasks."""
    families = {episode.task.family for episode in live if episode.success is not None}
    return AgentScore(
        simulated=_rate(simulated, recipe),
        live=_rate(live, recipe),
        by_family={
            family: _rate([episode for episode in live if episode.task.family == family], recipe)
            for family in sorted(families)
        },
    )


def gain(
    after: Sequence[EpisodeResult], before: Sequence[EpisodeResult], recipe: ValidateRecipe
) -> Estimate:
    """The change by a training, from pairs of episodes with the same task."""
    if [episode.task for episode in after] != [episode.task for episode in before]:
        raise ValueError("the two agents were asked different tasks")
    return estimate_difference(
        [[episode.success] for episode in after],
        [[episode.success] for episode in before],
        recipe.num_resamples,
        recipe.seed,
    )


async def _next_action(policy: Policy, task: Task, turns: Sequence[Turn]) -> str:
    """The policy's next answer; empty if the policy itself failed."""
    messages = agent_messages(task.instruction, turns)
    try:
        return (await policy.engine.complete(CompletionRequest(messages, policy.sampling))).text
    except EngineError as error:
        if error.kind in OWN_FAILURES:
            return ""
        raise


def _rate(results: Sequence[EpisodeResult], recipe: ValidateRecipe) -> Estimate:
    return estimate([[episode.success] for episode in results], recipe.num_resamples, recipe.seed)
