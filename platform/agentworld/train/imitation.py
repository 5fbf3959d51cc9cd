"""Imitation: a policy with a world model's weights learns to act like explorers with a task."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from agentworld.recipes.train import AgentRecipe
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.progress import OnProgress
from agentworld.records.trajectory import Trajectory
from agentworld.rendering.messages import agent_messages
from agentworld.train.encode import Conversation, encode, fit_rows
from agentworld.train.model import load_model
from agentworld.train.parent import Parent
from agentworld.train.save import save_checkpoint
from agentworld.train.trainer import train_rows


def run(
    recipe: AgentRecipe,
    trajectories: Iterable[Trajectory],
    parent: Parent,
    out: Path,
    on_progress: OnProgress,
) -> Checkpoint:
    """Trains from `parent`, a world model; writes `out/model`."""
    language_model = load_model(parent)
    conversations = _conversations(trajectories, recipe.imitation_episodes)
    rows = fit_rows(recipe.imitation, list(encode(language_model.tokenizer, conversations)))
    metrics = train_rows(language_model, recipe.imitation, rows, out, on_progress)
    return save_checkpoint(
        language_model,
        out,
        stage="imitation",
        recipe=recipe,
        parent=parent,
        metrics=metrics,
    )


def _conversations(trajectories: Iterable[Trajectory], num_episodes: int) -> Iterator[Conversation]:
    """The training episodes with a task, successful or not."""
    task_trajectories = (
        trajectory
        for trajectory in trajectories
        if trajectory.task is not None and not trajectory.held_out
    )
    for trajectory in islice(task_trajectories, num_episodes):
        yield _actions_of(trajectory)


def _actions_of(trajectory: Trajectory) -> Conversation:
    assert trajectory.task is not None
    *_, last = trajectory.turns
    messages = agent_messages(trajectory.task.instruction, trajectory.turns[:-1])
    messages.append({"role": "assistant", "content": last.action})
    return Conversation(messages, tuple(range(len(trajectory.turns))))
