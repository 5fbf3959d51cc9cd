"""Step 3: continual pre-training on every kind of turn."""

from pathlib import Path

from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.runner.frozen_gc import frozen_gc
from agentworld.runner.remote import anywhere
from agentworld.runner.step import run_step
from agentworld.steps.stage import check_unchanged, domains_of, inputs_of, parts_of


@anywhere("data")
def cpt(recipe: str, store: str, data: str) -> str:
    """The folder of the first checkpoint."""
    settings = load_recipe(recipe_path(recipe))
    inputs = inputs_of("cpt", settings, data)

    def work(out: Path, tick: Tick) -> Digest:
        with frozen_gc():
            from agentworld.train import next_token
        base = Path(settings.model.base) if settings.model.base else None
        checkpoint = next_token.run(settings.cpt, settings.model, Path(data), base, out, tick)
        check_unchanged(checkpoint, inputs)
        return checkpoint.artifact

    return str(
        run_step(
            Path(store), "cpt", parts_of("cpt", settings), inputs, work, domains=domains_of(data)
        )
    )
