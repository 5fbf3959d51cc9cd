"""Supervised fine-tuning of the CPT checkpoint, or of the recipe's base."""

from pathlib import Path

from agentworld.records.base import Digest
from agentworld.records.progress import OnProgress
from agentworld.runner.frozen_gc import frozen_gc
from agentworld.runner.task import Plan, Task
from agentworld.steps.content import check_unchanged
from agentworld.steps.start import check_rates, start_of
from agentworld.steps.training_run import training_run
from agentworld.storage.pools import read_dataset


def plan(task: Task) -> Plan:
    """Trains the parent's model, where there is none as CPT does."""
    recipe, data, start = task.recipe, task.folders["data"], start_of(task)
    check_rates("sft", recipe.sft, from_scratch=start.from_scratch)

    def work(out: Path, on_progress: OnProgress) -> Digest:
        with frozen_gc():
            from agentworld.train import next_token
        parent = start.parent() if start.parent else None
        with training_run(task.store, out) as on_metrics:
            checkpoint = next_token.run(
                recipe.sft, recipe.model, data, parent, out, on_progress, on_metrics
            )
        check_unchanged(checkpoint, start.inputs)
        return checkpoint.artifact

    return Plan(work, start.inputs, domains=read_dataset(data).domains)
