"""Step 3: continual pre-training on every kind of turn."""

from pathlib import Path

from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.steps.base import output_of, run_step
from agentworld.steps.heavy import lasting


def cpt(recipe: str, store: str, data: str) -> str:
    """The folder of the first checkpoint."""
    chosen = load_recipe(recipe_path(recipe))

    def work(out: Path, tick: Tick) -> Digest:
        with lasting():
            from agentworld.train import next_token
        return next_token.run(chosen.cpt, chosen.model, Path(data), None, out, tick).artifact

    inputs = {"data": output_of(data)}
    return str(run_step(Path(store), "cpt", [chosen.model, chosen.cpt], inputs, work))
