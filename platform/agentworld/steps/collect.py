"""Explorers act in live environments, or what was recorded elsewhere is taken in."""

from pathlib import Path

from agentworld.data.collect import collect
from agentworld.data.explore import collected_domain
from agentworld.data.imported import import_trajectories
from agentworld.data.importers import importer_of
from agentworld.domains.live import live_domain
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.runner.task import Plan, Task


def plan(task: Task) -> Plan:
    """Recorded trajectories count by their content and not by where they lie."""
    part = task.recipe.collect
    if part.trajectories is None:
        domain = collected_domain(part)
        return Plan(
            lambda out, tick: collect(part, out, tick),
            check=live_domain(domain).check_available,
            domains=[domain],
        )
    source = Path(part.trajectories)

    def work(out: Path, tick: Tick) -> Digest:
        return import_trajectories(part, source, out, tick)

    return Plan(work, {"trajectories": importer_of(part.format).digest(source)})
