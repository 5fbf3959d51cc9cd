"""Step 4: supervised fine-tuning of the CPT checkpoint."""

from pathlib import Path

from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.runner.folders import model_of
from agentworld.runner.frozen_gc import frozen_gc
from agentworld.runner.remote import anywhere
from agentworld.runner.step import run_step
from agentworld.steps.stage import domains_of, inputs_of, parts_of


@anywhere("data", "parent")
def sft(recipe: str, store: str, data: str, parent: str) -> str:
    """The folder of the checkpoint."""
    settings = load_recipe(recipe_path(recipe))

    def work(out: Path, tick: Tick) -> Digest:
        with frozen_gc():
            from agentworld.train import next_token
        first = model_of(Path(parent))
        return next_token.run(settings.sft, settings.model, Path(data), first, out, tick).artifact

    inputs = inputs_of("sft", settings, data, parent)
    return str(
        run_step(
            Path(store), "sft", parts_of("sft", settings), inputs, work, domains=domains_of(data)
        )
    )
