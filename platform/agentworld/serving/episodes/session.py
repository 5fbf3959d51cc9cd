"""An episode as a pure fold over its steps: the request, the answer's outcome, the stored step."""

from collections.abc import Sequence
from typing import NamedTuple

from agentworld.engine.base import Completion
from agentworld.errors import Conflict, EngineError, InputError
from agentworld.http.schemas import Request
from agentworld.records.base import Digest, digest_json
from agentworld.records.episode import (
    Confidence,
    Episode,
    EpisodeOpening,
    EpisodeStep,
    ResetResult,
    Source,
    StepResult,
    next_head,
    text_digest,
)
from agentworld.records.simulator import SimulatorManifest
from agentworld.records.usage import Usage
from agentworld.rendering.episode import erased_conflict
from agentworld.rendering.parse import parse_observation
from agentworld.scoring.success import outcome
from agentworld.serving.episodes.store import OpenEpisode


class StepObservation(NamedTuple):
    """The observation of an action, and its confidence."""

    observation: str
    confidence: Confidence
    usage: Usage = Usage()
    queued_seconds: float = 0.0
    """Seconds of waiting for the engine."""


def check_seed(manifest: SimulatorManifest, opening: EpisodeOpening) -> None:
    """Raises InputError for a seed that this simulator does not support; a replay accepts any."""
    refuses = manifest.sampling.seed_policy == "refuse" and opening.replay is None
    if opening.seed is not None and refuses:
        raise InputError(
            f"the seed {opening.seed} cannot be used: the simulator's seed policy is `refuse`,"
            " because its engine may not repeat answers for equal seeds; leave the seed out,"
            " replay a recorded episode, or name a simulator whose policy is `seeded`"
        )


def seed(manifest: SimulatorManifest, opening: EpisodeOpening, number: int) -> int | None:
    """The seed of a step's answer, if the simulator supports seeds: equal for equal episodes."""
    if manifest.sampling.seed_policy == "refuse":
        return None
    task_seed = opening.task.seed if opening.task else 0
    digest = digest_json([task_seed if opening.seed is None else opening.seed, number])
    return int(digest.removeprefix("sha256:")[:8], 16)


def continue_opening(opening: EpisodeOpening, source: Episode, position: Source) -> EpisodeOpening:
    """The opening of a fork or a replay of `source`: its start, its task, its world.

    Raises Conflict if the source has too few steps, InputError if the opening has its own start.
    """
    if position.step > len(source.steps):
        raise Conflict(
            f"episode {source.id} has {len(source.steps)} steps and no step {position.step}"
        )
    own = opening.model_dump(exclude={"run", "fork", "replay", "seed"}, exclude_defaults=True)
    if own:
        raise InputError(
            f"an episode that starts from {source.id} takes {', '.join(sorted(own))} from it;"
            " leave it out"
        )
    own_fields = {"run": opening.run, "fork": opening.fork, "replay": opening.replay}
    own_seed = {"seed": opening.seed} if opening.seed is not None else {}
    return source.opened_with.model_copy(update=own_fields | own_seed)


def copy_steps(episode: Episode, steps: Sequence[EpisodeStep]) -> Episode:
    """The episode with a copy of these steps, under its own name and chained to its own start."""
    copies: list[EpisodeStep] = []
    head = episode.first_head
    for step in steps:
        # their usage counts for the other episode
        copies.append(step._replace(episode=episode.id, usage=Usage()).link(head))
        head = copies[-1].head
    if copies and copies[-1].done:
        raise Conflict(
            f"episode {steps[-1].episode} ended with step {len(copies)}; fork it earlier"
        )
    return episode._replace(steps=tuple(copies))


def repeated_number(episode: Episode | OpenEpisode, request: Request) -> int | None:
    """The number of the step that the request repeats; null if it repeats none."""
    number = request.number
    return number if number is not None and 1 <= number <= len(episode.steps) else None


def find_recorded(episode: Episode | OpenEpisode, request: Request) -> EpisodeStep | None:
    """The recorded answer; null if the request is the episode's next step.

    Raises Conflict for a step out of order, for another action, and after the end.
    """
    if repeated := repeated_number(episode, request):
        return _same(episode.steps[repeated - 1], request.action)
    num_steps, number = len(episode.steps), request.number
    if episode.closed:
        raise Conflict(
            f"episode {episode.id} is over ({episode.closed}) after step {num_steps}; reset to"
            " begin another"
        )
    if number not in (None, num_steps + 1):
        raise Conflict(f"the next step of episode {episode.id} is {num_steps + 1}, not {number}")
    return None


def replay_step(episode: OpenEpisode, action: str) -> StepObservation:
    """The recorded observation of the next step, byte for byte.

    Raises Conflict if the record ends, has another action, or was erased.
    """
    num_steps = len(episode.steps)
    if num_steps >= len(episode.record):
        raise Conflict(
            f"the record ends with step {len(episode.record)}; fork the episode to go on"
        )
    step = _same(episode.record[num_steps], action)
    if step.observation is None:
        raise erased_conflict(step)
    return StepObservation(step.observation, step.confidence)


def _same(step: EpisodeStep, action: str) -> EpisodeStep:
    if step.action_digest != text_digest(action):
        raise Conflict(
            f"step {step.number} of episode {step.episode} was taken with another action,"
            f" {(step.action or 'erased')[:80]!r}"
        )
    return step


def check_context(manifest: SimulatorManifest, num_prompt_tokens: int) -> None:
    """Raises EngineError if a prompt and its longest answer do not fit the context."""
    if num_prompt_tokens + manifest.sampling.max_tokens > manifest.context_tokens:
        raise EngineError(
            f"the episode's {num_prompt_tokens} tokens and an answer of"
            f" {manifest.sampling.max_tokens} do not fit in {manifest.context_tokens};"
            " end it and begin another",
            kind="context",
            retryable=False,
        )


def observation(manifest: SimulatorManifest, completion: Completion) -> str:
    """The observation in the engine's answer, without its thoughts; raises EngineError for none."""
    check_context(manifest, completion.num_prompt_tokens)
    text = parse_observation(completion.text)
    if text is None:
        raise EngineError(
            f"there is no observation in the engine's answer {completion.text[:80]!r}",
            kind="unparsable",
            retryable=manifest.sampling.temperature > 0,
        )
    return text


def next_step(episode: OpenEpisode, action: str, step_observation: StepObservation) -> EpisodeStep:
    """The step to store: its observation and its outcome."""
    number = len(episode.steps) + 1
    text, confidence, usage, _ = step_observation
    opening = episode.opening
    result = outcome(episode.domain, opening.task, opening.limit, number, action, text)
    digests = text_digest(action), text_digest(text)
    head = next_head(episode.head, number, *digests, (*result, *confidence))
    fields = episode.id, number, action, text, *digests
    return EpisodeStep(*fields, *result, confidence, usage, head)


def to_reset_result(episode: Episode) -> ResetResult:
    """The response to a reset."""
    opening = episode.opened_with
    return ResetResult(
        simulator=episode.simulator,
        run=episode.run,
        episode=episode.id,
        step=len(episode.steps),
        instruction=opening.task.instruction if opening.task else None,
        control=opening.control,
    )


def to_step_result(simulator: Digest, run: str, step: EpisodeStep) -> StepResult:
    """The response to a step, the same for every repetition."""
    if step.observation is None:
        raise erased_conflict(step)
    outcome_ = step.reward, step.done, step.truncated
    return StepResult(
        simulator, run, step.episode, step.number, step.observation, *outcome_, *step.confidence
    )
