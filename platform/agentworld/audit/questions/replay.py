"""Checks that a service replays a recorded episode byte for byte.

A replay is a new episode in a new evaluation run, because the recorded run may be closed.
"""

from collections.abc import Iterator

from agentworld.client.simulator import SimulatorClient
from agentworld.errors import Conflict
from agentworld.records.base import Record
from agentworld.records.episode import Episode, EpisodeOpening, EpisodeStep, Source, StepResult
from agentworld.records.run import AgentRun


class ReplayReport(Record):
    """The answer to: does the service reproduce this episode?"""

    episode: str
    run: str
    """The run that was opened for the replay."""
    replay: str
    """The replayed episode's id."""
    num_steps: int
    differences: tuple[str, ...]
    """Empty if every response equals the recorded one."""


async def replay_episode(name: str, client: SimulatorClient, opened_by: str) -> ReplayReport:
    """Repeats every recorded action; raises Conflict if retention erased one."""
    episode = await client.episode(name)
    actions = [_action(step) for step in episode.steps]
    run = await _open_run(episode, client, opened_by)
    source = Source(episode=name, step=len(actions))
    replay = await client.begin(EpisodeOpening(run=run.id, replay=source))
    differences: list[str] = []
    for step, action in zip(episode.steps, actions, strict=True):
        differences += _differences(step, await client.step(replay.episode, action))
    await client.end(replay.episode)
    await client.close_run(run.opening.starting_weights)
    return ReplayReport(
        episode=name,
        run=run.id,
        replay=replay.episode,
        num_steps=len(actions),
        differences=tuple(differences),
    )


async def _open_run(episode: Episode, client: SimulatorClient, opened_by: str) -> AgentRun:
    first = await client.resume_run(episode.run)
    own = {"purpose": "evaluation", "opened_by": opened_by, "simulator": None}
    return await client.open_run(first.opening.model_copy(update=own))


def _action(step: EpisodeStep) -> str:
    if step.action is None:
        raise Conflict(
            f"step {step.number} of episode {step.episode} was erased by retention; the episode"
            " can be verified but not replayed"
        )
    return step.action


def _differences(step: EpisodeStep, answer: StepResult) -> Iterator[str]:
    """The differences between a response and the recorded one."""
    recorded = {
        "observation": step.observation,
        "reward": step.reward,
        "done": step.done,
        "truncated": step.truncated,
        "mean_logprob": step.confidence.mean_logprob,
        "agreement": step.confidence.agreement,
        "low_confidence": step.confidence.low,
    }
    for name, value in recorded.items():
        if getattr(answer, name) != value:
            yield f"step {step.number}: the {name} differs from the recorded one"
