"""Trajectories become samples in disjoint pools."""

from pathlib import Path

from agentworld.data.prepare import prepare
from agentworld.records.base import Digest
from agentworld.records.collected import Collected
from agentworld.records.progress import Tick
from agentworld.runner.task import Plan, Task
from agentworld.storage.trajectories import MANIFEST


def plan(task: Task) -> Plan:
    """Makes the data set."""

    def work(out: Path, tick: Tick) -> Digest:
        return prepare(task.recipe.prepare, task.folders["collected"], out, tick).digest

    collected = Collected.read(task.folders["collected"] / MANIFEST)
    return Plan(work, domains=collected.domains)
