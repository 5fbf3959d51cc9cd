"""RL of the SFT checkpoint on what it predicts."""

from pathlib import Path

from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.runner.folders import model_of
from agentworld.runner.frozen_gc import frozen_gc
from agentworld.runner.task import Plan, Task
from agentworld.steps.content import check_unchanged, content_of
from agentworld.storage.pools import read_dataset


def plan(task: Task) -> Plan:
    """Trains the parent's model on the rewards of the recipe."""
    settings = task.recipe.rl
    content = content_of("reward_model", settings.reward.folder)
    data, parent = task.folders["data"], model_of(task.folders["parent"])

    def work(out: Path, tick: Tick) -> Digest:
        with frozen_gc():
            from agentworld.train import world_rl
        checkpoint = world_rl.run(settings, data, parent, out, tick)
        check_unchanged(checkpoint, content)
        return checkpoint.artifact

    return Plan(work, content, domains=read_dataset(task.folders["data"]).domains)
