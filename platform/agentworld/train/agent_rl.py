"""RL of an agent in a pinned simulator, without a live environment."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from datasets import Dataset
from trl import GRPOTrainer

from agentworld.client.base import World
from agentworld.recipes.train import AgentRecipe, AgentRlRecipe
from agentworld.records.base import Digest
from agentworld.records.checkpoint import ArtifactManifest, Checkpoint
from agentworld.records.message import Message
from agentworld.records.progress import OnProgress
from agentworld.records.task import Task
from agentworld.train.divergence import FiniteTrainer
from agentworld.train.group_rl import GroupTrainer, group_config, mean_reward
from agentworld.train.model import load_model
from agentworld.train.parent import Parent
from agentworld.train.preemption import train_to_end
from agentworld.train.rollout import Policy, Rollout, rollout_all
from agentworld.train.save import save_checkpoint
from agentworld.train.trainer import TrainerProgress

_MASKED = "masked_steps"
_MAX_OBSERVATION_TOKENS = 64
_SEEDS_PER_RUN = 1_000_000  # far from the seeds of validation's tasks


class _AgentTrainer(FiniteTrainer, GroupTrainer):
    """TRL's trainer, which ends if the training diverges."""


class Practice(NamedTuple):
    """The simulator and the tasks that an agent learns from."""

    world: World
    simulator: Digest
    task: Callable[[int], Task]
    """The task of a seed."""


def run(
    recipe: AgentRecipe, parent: Parent, practice: Practice, out: Path, on_progress: OnProgress
) -> Checkpoint:
    """Trains from `parent` in the simulator; writes `out/model`."""
    language_model = load_model(parent)
    weights = ArtifactManifest.of(parent.folder).digest
    policy = Policy(
        language_model.model,
        language_model.tokenizer,
        recipe.rl.temperature,
        recipe.rl.max_tokens,
        weights,
    )
    tasks = _tasks(recipe.rl, practice.task)
    most_tokens = _longest(recipe.rl, tasks.values())
    with asyncio.Runner() as runner:

        def play(prompts: Sequence[Sequence[Message]], trainer: GRPOTrainer) -> dict[str, object]:
            batch = [tasks[prompt[0]["content"]] for prompt in prompts]
            current_policy = replace(policy, step=trainer.state.global_step)
            return _columns(runner.run(rollout_all(current_policy, practice.world, batch)))

        trainer = _AgentTrainer(
            model=language_model.model,
            processing_class=language_model.tokenizer,
            reward_funcs=_reward,
            rollout_func=play,
            args=group_config(recipe.rl, out, max_completion_tokens=most_tokens),
            train_dataset=Dataset.from_list([{"prompt": _prompt(words)} for words in tasks]),
            callbacks=[TrainerProgress(on_progress)],
        )
        train_to_end(trainer)
    return save_checkpoint(
        language_model,
        out,
        stage="agent",
        recipe=recipe,
        parent=parent,
        simulator=practice.simulator,
        metrics=_metrics(trainer),
    )


def _tasks(recipe: AgentRlRecipe, task_of: Callable[[int], Task]) -> dict[str, Task]:
    """Tasks by their instructions, because a prompt has nothing else."""
    first = (recipe.seed + 1) * _SEEDS_PER_RUN
    num_tasks = recipe.num_steps * recipe.prompts_per_step
    candidates = (task_of(first + number) for number in range(2 * num_tasks))
    tasks = {task.instruction: task for task in candidates}
    return dict(list(tasks.items())[:num_tasks])


def _prompt(instruction: str) -> list[Message]:
    return [{"role": "user", "content": instruction}]


def _longest(recipe: AgentRlRecipe, tasks: Iterable[Task]) -> int:
    most_turns = max(task.turn_limit for task in tasks)
    return most_turns * (recipe.max_tokens + _MAX_OBSERVATION_TOKENS)


def _columns(attempts: Sequence[Rollout]) -> dict[str, object]:
    return {
        "prompt_ids": [attempt.prompt_ids for attempt in attempts],
        "completion_ids": [attempt.completion_ids for attempt in attempts],
        "logprobs": None,
        "env_mask": [attempt.is_target for attempt in attempts],
        "episode_reward": [attempt.reward for attempt in attempts],
        "num_masked": [attempt.num_masked for attempt in attempts],
    }


def _reward(
    episode_reward: Sequence[float | None],
    num_masked: Sequence[int],
    log_metric: Callable[[str, float], None],
    **_: object,
) -> list[float | None]:
    """The simulator's reward at the end of each episode; null for a hole."""
    log_metric(_MASKED, sum(num_masked))
    return list(episode_reward)


def _metrics(trainer: GRPOTrainer) -> dict[str, float]:
    """Rewards, and the number of steps with observations of low confidence."""
    num_masked = sum(float(entry.get(_MASKED, 0)) for entry in trainer.state.log_history)
    return {**mean_reward(trainer), _MASKED: num_masked}
