"""Step 3: continual pre-training on every kind of turn."""

from pathlib import Path

from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.runner.frozen_gc import lasting
from agentworld.runner.remote import anywhere
from agentworld.runner.step import run_step
from agentworld.steps.stage import check_unchanged, inputs_of, parts_of


@anywhere("data")
def cpt(recipe: str, store: str, data: str) -> str:
    """The folder of the first checkpoint."""
    chosen = load_recipe(recipe_path(recipe))
    inputs = inputs_of("cpt", chosen, data)

    def work(out: Path, tick: Tick) -> Digest:
        with lasting():
            from agentworld.train import next_token
        base = Path(chosen.model.base) if chosen.model.base else None
        made = next_token.run(chosen.cpt, chosen.model, Path(data), base, out, tick)
        check_unchanged(made, inputs)
        return made.artifact

    return str(run_step(Path(store), "cpt", parts_of("cpt", chosen), inputs, work))
