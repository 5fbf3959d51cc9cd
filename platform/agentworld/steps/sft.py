"""Supervised fine-tuning of the CPT checkpoint."""

from pathlib import Path

from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.runner.folders import model_of
from agentworld.runner.frozen_gc import frozen_gc
from agentworld.runner.task import Plan, Task
from agentworld.storage.pools import read_dataset


def plan(task: Task) -> Plan:
    """Trains the parent's model."""
    settings = task.recipe
    data, parent = task.folders["data"], model_of(task.folders["parent"])

    def work(out: Path, tick: Tick) -> Digest:
        with frozen_gc():
            from agentworld.train import next_token
        return next_token.run(settings.sft, settings.model, data, parent, out, tick).artifact

    return Plan(work, domains=read_dataset(data).domains)
