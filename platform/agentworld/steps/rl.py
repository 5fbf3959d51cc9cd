"""RL of the SFT checkpoint, or of the recipe's base, with rewards for its predictions."""

from pathlib import Path

from agentworld.errors import InputError
from agentworld.records.base import Digest
from agentworld.records.progress import OnProgress
from agentworld.runner.frozen_gc import frozen_gc
from agentworld.runner.task import Plan, Task
from agentworld.steps.answers import open_answers
from agentworld.steps.content import check_unchanged, content_of
from agentworld.steps.start import check_rates, start_of
from agentworld.steps.training_run import training_run
from agentworld.storage.pools import read_dataset


def plan(task: Task) -> Plan:
    """Trains the parent's model with the recipe's rewards.

    Every answer of a judge is stored immediately, for all steps.
    """
    recipe, data, start = task.recipe.rl, task.folders["data"], start_of(task)
    if start.parent is None:
        raise InputError("RL has no model to start from; give --parent, or name model.base")
    check_rates("rl", recipe, from_scratch=start.from_scratch)
    parent = start.parent
    inputs = {**start.inputs, **content_of("reward_model", recipe.reward.folder)}

    def work(out: Path, on_progress: OnProgress) -> Digest:
        with frozen_gc():
            from agentworld.train import world_rl
        answers = open_answers(task.store) if recipe.reward.rubric == "endpoint" else None
        with training_run(task, out, inputs) as on_metrics:
            checkpoint = world_rl.run(
                recipe, data, parent(), out, on_progress, on_metrics, answers=answers
            )
        check_unchanged(checkpoint, inputs)
        return checkpoint.artifact

    return Plan(work, inputs, domains=read_dataset(data).domains)
