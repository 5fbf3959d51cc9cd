"""Step 3: continual pre-training on every kind of turn."""

from pathlib import Path

from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.steps.base import run_step
from agentworld.steps.heavy import lasting
from agentworld.steps.remote import anywhere
from agentworld.steps.stage import inputs_of, parts_of


@anywhere("data")
def cpt(recipe: str, store: str, data: str) -> str:
    """The folder of the first checkpoint."""
    chosen = load_recipe(recipe_path(recipe))

    def work(out: Path, tick: Tick) -> Digest:
        with lasting():
            from agentworld.train import next_token
        return next_token.run(chosen.cpt, chosen.model, Path(data), None, out, tick).artifact

    parts = parts_of("cpt", chosen)
    return str(run_step(Path(store), "cpt", parts, inputs_of(data), work))
