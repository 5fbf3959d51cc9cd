"""Step 1: exploring policies act in a live shell."""

from pathlib import Path

from agentworld.data.collect import collect as collect_trajectories
from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.steps.base import run_step


def collect(recipe: str, store: str) -> str:
    """The folder of the trajectories."""
    part = load_recipe(recipe_path(recipe)).collect

    def work(out: Path, tick: Tick) -> Digest:
        return collect_trajectories(part, out, tick)

    return str(run_step(Path(store), "collect", [part], {}, work))
