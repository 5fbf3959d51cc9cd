"""Makes samples in disjoint pools from trajectories."""

from pathlib import Path

from agentworld.data.prepare import prepare
from agentworld.records.base import Digest
from agentworld.records.progress import OnProgress
from agentworld.runner.task import Plan, Task
from agentworld.storage.source import digest_of
from agentworld.storage.trajectories import domains_in


def plan(task: Task) -> Plan:
    """The step's key has the digest of each benchmark, not its address."""
    recipe, collected = task.recipe.prepare, task.folders["collected"]
    benchmarks = [digest_of(benchmark) for benchmark in recipe.benchmarks]
    inputs = {f"benchmark {number}": digest for number, digest in enumerate(benchmarks)}

    def work(out: Path, on_progress: OnProgress) -> Digest:
        return prepare(recipe, collected, out, on_progress, benchmarks=benchmarks).digest

    return Plan(work, inputs, domains=domains_in(collected))
