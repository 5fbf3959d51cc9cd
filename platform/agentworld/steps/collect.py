"""Records explorers in live environments, or imports recordings from elsewhere."""

from pathlib import Path

from agentworld.data.collect import collect
from agentworld.data.explore import collected_domains
from agentworld.data.imported import import_trajectories, open_recordings
from agentworld.data.importers.base import module_of
from agentworld.domains.live import check_available
from agentworld.records.base import Digest
from agentworld.records.progress import OnProgress
from agentworld.runner.code import module_digest
from agentworld.runner.task import Plan, Task
from agentworld.storage.source import digest_of


def plan(task: Task) -> Plan:
    """Recordings enter the step's key by digest, not by address, with the code that reads them."""
    part = task.recipe.collect
    if part.trajectories is None:
        domains = collected_domains(part)
        return Plan(
            lambda out, on_progress: collect(part, out, on_progress),
            check=lambda: check_available(domains),
            domains=domains,
        )

    content = digest_of(part.trajectories)
    importer = module_digest(module_of(open_recordings(part).form))

    def work(out: Path, on_progress: OnProgress) -> Digest:
        return import_trajectories(part, content, out, on_progress)

    return Plan(work, {"trajectories": content, "importer": importer})
