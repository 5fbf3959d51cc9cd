"""Trajectories become samples in disjoint pools."""

from pathlib import Path

from agentworld.data.prepare import prepare
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.runner.task import Plan, Task
from agentworld.storage.source import digest_of
from agentworld.storage.trajectories import domains_in


def plan(task: Task) -> Plan:
    """Benchmarks count by their content and not by where they are."""
    sources = task.recipe.prepare.benchmarks
    content = {f"benchmark {number}": digest_of(each) for number, each in enumerate(sources)}

    def work(out: Path, tick: Tick) -> Digest:
        return prepare(task.recipe.prepare, task.folders["collected"], out, tick).digest

    return Plan(work, content, domains=domains_in(task.folders["collected"]))
