"""An episode as a pure fold over its steps: what to ask, what an answer means, what to store."""

from typing import NamedTuple

from agentworld.domains.terminal.prompts import prompt_parts
from agentworld.engine.base import Completion
from agentworld.errors import Conflict, EngineError
from agentworld.records.base import digest_json
from agentworld.records.message import Message
from agentworld.records.run import Episode, EpisodeStep, ResetResult, StepResult
from agentworld.records.simulator import SimulatorManifest
from agentworld.records.trajectory import Turn
from agentworld.rendering.messages import world_messages
from agentworld.rendering.parse import parse_observation
from agentworld.scoring.success import outcome


class Request(NamedTuple):
    """The next step of an episode, or a repetition of an earlier one."""

    number: int
    action: str


def messages(manifest: SimulatorManifest, episode: Episode, action: str) -> list[Message]:
    """What the engine reads before it says what `action` shows."""
    opening = episode.opening
    instruction = opening.simulation_instruction or manifest.control_text
    turns = [Turn(action=step.action, observation=step.observation) for step in episode.steps]
    return world_messages(prompt_parts(opening.start, instruction=instruction), turns, action)


def seed(manifest: SimulatorManifest, episode: Episode) -> int | None:
    """The seed of the next answer, where the simulator takes one: equal for equal episodes."""
    if manifest.sampling.seed_policy == "refuse":
        return None
    task_seed = episode.opening.task.seed if episode.opening.task else 0
    digest = digest_json([task_seed, len(episode.steps)])
    return int(digest.removeprefix("sha256:")[:8], 16)


def recorded(episode: Episode, request: Request) -> EpisodeStep | None:
    """The answer that was already given; null where the request is the episode's next step.

    Raises Conflict for a step out of turn, for another action, and after the end.
    """
    taken = len(episode.steps)
    if 1 <= request.number <= taken:
        step = episode.steps[request.number - 1]
        if step.action != request.action:
            raise Conflict(
                f"step {request.number} of episode {episode.id} was taken with another action,"
                f" {step.action!r}"
            )
        return step
    if episode.done:
        raise Conflict(f"episode {episode.id} ended with step {taken}; reset to begin another")
    if request.number != taken + 1:
        raise Conflict(
            f"the next step of episode {episode.id} is {taken + 1}, not {request.number}"
        )
    return None


def observation(manifest: SimulatorManifest, completion: Completion) -> str:
    """What the engine said, without its thoughts; raises EngineError where that is nothing."""
    longest = completion.num_prompt_tokens + manifest.sampling.max_tokens
    if longest > manifest.context_tokens:
        raise EngineError(
            f"the episode's {completion.num_prompt_tokens} tokens and an answer of"
            f" {manifest.sampling.max_tokens} do not fit in {manifest.context_tokens};"
            " end it and begin another",
            kind="context",
            retryable=False,
        )
    shown = parse_observation(completion.text)
    if shown is None:
        raise EngineError(
            f"there is no observation in the engine's answer {completion.text[:80]!r}",
            kind="unparsable",
            retryable=manifest.sampling.temperature > 0,
        )
    return shown


def next_step(episode: Episode, action: str, shown: str) -> EpisodeStep:
    """The step to store: what was shown, and what it means for the task."""
    opening, number = episode.opening, len(episode.steps) + 1
    result = outcome(opening.task, opening.limit, number, action, shown)
    step = EpisodeStep(
        episode=episode.id,
        number=number,
        action=action,
        observation=shown,
        reward=result.reward,
        done=result.done,
        truncated=result.truncated,
        head=episode.head,
    )
    return step.linked(episode.head)


def opened(episode: Episode) -> ResetResult:
    """The answer to a reset."""
    task = episode.opening.task
    return ResetResult(
        simulator=episode.simulator,
        run=episode.opening.run,
        episode=episode.id,
        instruction=task.instruction if task else None,
    )


def answered(episode: Episode, step: EpisodeStep) -> StepResult:
    """The answer to a step, the same however often it is asked for."""
    return StepResult(
        simulator=episode.simulator,
        run=episode.opening.run,
        episode=episode.id,
        step=step.number,
        observation=step.observation,
        reward=step.reward,
        done=step.done,
        truncated=step.truncated,
    )
