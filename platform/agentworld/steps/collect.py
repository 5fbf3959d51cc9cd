"""Exploring policies act in a live shell, or what was recorded elsewhere is taken in."""

from pathlib import Path

from agentworld.data.collect import collect
from agentworld.data.recorded import take_in
from agentworld.domains.sandbox import check_sandbox
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.runner.task import Plan, Task
from agentworld.storage.trajectories import recorded


def plan(task: Task) -> Plan:
    """Recorded trajectories count by their content and not by where they lie."""
    part = task.recipe.collect
    if part.trajectories is None:
        return Plan(lambda out, tick: collect(part, out, tick), check=check_sandbox)
    source = Path(part.trajectories)

    def work(out: Path, tick: Tick) -> Digest:
        return take_in(part, source, out, tick)

    return Plan(work, {"trajectories": recorded(source).digest})
