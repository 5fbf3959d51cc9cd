"""Step 1: explorers act in live environments, or what was recorded elsewhere is taken in."""

from pathlib import Path

from agentworld.data.collect import collect as collect_live
from agentworld.data.explore import collected_domain
from agentworld.data.importers import importer_of
from agentworld.data.recorded import take_in
from agentworld.domains.live import live_domain
from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.runner.remote import anywhere
from agentworld.runner.step import run_step


@anywhere()
def collect(recipe: str, store: str) -> str:
    """The folder of the trajectories."""
    part = load_recipe(recipe_path(recipe)).collect
    source = Path(part.trajectories) if part.trajectories else None

    def work(out: Path, tick: Tick) -> Digest:
        return take_in(part, source, out, tick) if source else collect_live(part, out, tick)

    # They count by their content and not by where they lie.
    inputs = {"trajectories": importer_of(part.format).digest(source)} if source else {}
    parts = [part.model_copy(update={"trajectories": None})]
    if source:
        return str(run_step(Path(store), "collect", parts, inputs, work))
    domain = collected_domain(part)
    check = live_domain(domain).check_available
    return str(run_step(Path(store), "collect", parts, inputs, work, check=check, domains=[domain]))
