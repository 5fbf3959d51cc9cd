"""Continual pre-training on every kind of turn."""

from pathlib import Path

from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.runner.frozen_gc import frozen_gc
from agentworld.runner.task import Plan, Task
from agentworld.steps.content import check_unchanged, content_of
from agentworld.storage.pools import read_dataset


def plan(task: Task) -> Plan:
    """Trains a new model, or one from the base that the recipe names."""
    settings = task.recipe
    content = content_of("base", settings.model.base)
    base = Path(settings.model.base) if settings.model.base else None

    def work(out: Path, tick: Tick) -> Digest:
        with frozen_gc():
            from agentworld.train import next_token
        data = task.folders["data"]
        checkpoint = next_token.run(settings.cpt, settings.model, data, base, out, tick)
        check_unchanged(checkpoint, content)
        return checkpoint.artifact

    return Plan(work, content, domains=read_dataset(task.folders["data"]).domains)
