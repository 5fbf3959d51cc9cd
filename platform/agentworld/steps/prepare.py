"""Trajectories become samples in disjoint pools."""

from pathlib import Path

from agentworld.data.prepare import prepare
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.runner.task import Plan, Task


def plan(task: Task) -> Plan:
    """Makes the data set."""

    def work(out: Path, tick: Tick) -> Digest:
        return prepare(task.recipe.prepare, task.folders["collected"], out, tick).digest

    return Plan(work)
