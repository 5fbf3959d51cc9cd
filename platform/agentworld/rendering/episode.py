"""Renders a served episode as the chat messages for its engine."""

from agentworld.errors import Conflict
from agentworld.records.episode import Episode, EpisodeOpening, EpisodeStep
from agentworld.records.message import Message
from agentworld.records.simulator import SimulatorManifest
from agentworld.records.trajectory import PromptParts
from agentworld.rendering.messages import exchange, world_messages
from agentworld.rendering.tools import action_space


def episode_messages(manifest: SimulatorManifest, episode: Episode) -> list[Message]:
    """The messages before the next action; raises Conflict if a step was erased."""
    opening = episode.opened_with
    domain = manifest.domains[domain_name(manifest, opening)]
    prompt = PromptParts(
        task_description=domain.system_prompt,  # all parts before the initial state, as pinned
        action_space=action_space(opening.tools),
        initial_state=opening.start,
        simulation_instruction=opening.simulation_instruction or manifest.control_text,
    )
    first, *_ = world_messages(prompt, (), "")
    examples = [exchange(turn.action, turn.observation) for turn in opening.prior_turns]
    turns = [*examples, *map(step_messages, episode.steps)]
    return [first, *(message for turn in turns for message in turn)]


def domain_name(manifest: SimulatorManifest, opening: EpisodeOpening) -> str:
    """The domain of an episode: its task's, the one that it names, or the simulator's only one.

    Raises InputError if the simulator does not have it, or has several and none is named.
    """
    task_domain = opening.task.domain if opening.task else ""
    return manifest.domain_of(task_domain or opening.domain)


def step_messages(step: EpisodeStep) -> list[Message]:
    """A step as messages of the history; raises Conflict if retention erased it."""
    if step.action is None or step.observation is None:
        raise erased_conflict(step)
    return exchange(step.action, step.observation)


def erased_conflict(step: EpisodeStep) -> Conflict:
    """The error of a step whose texts are needed and were erased."""
    return Conflict(f"step {step.number} of episode {step.episode} was erased by retention")
