"""Step 2: trajectories become samples in disjoint pools."""

from pathlib import Path

from agentworld.data.prepare import prepare as prepare_dataset
from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.runner.remote import anywhere
from agentworld.runner.step import output_of, run_step
from agentworld.storage.trajectories import read_collected


@anywhere("collected")
def prepare(recipe: str, store: str, collected: str) -> str:
    """The folder of the data set."""
    part = load_recipe(recipe_path(recipe)).prepare

    def work(out: Path, tick: Tick) -> Digest:
        return prepare_dataset(part, Path(collected), out, tick).digest

    inputs = {"collected": output_of(collected)}
    domains = read_collected(Path(collected)).domains
    return str(run_step(Path(store), "prepare", [part], inputs, work, domains=domains))
