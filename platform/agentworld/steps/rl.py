"""Step 5: RL of the SFT checkpoint on what it predicts."""

from pathlib import Path

from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.runner.folders import model_of
from agentworld.runner.frozen_gc import frozen_gc
from agentworld.runner.remote import anywhere
from agentworld.runner.step import run_step
from agentworld.steps.stage import check_unchanged, domains_of, inputs_of, parts_of


@anywhere("data", "parent")
def rl(recipe: str, store: str, data: str, parent: str) -> str:
    """The folder of the checkpoint."""
    settings = load_recipe(recipe_path(recipe))
    inputs = inputs_of("rl", settings, data, parent)

    def work(out: Path, tick: Tick) -> Digest:
        with frozen_gc():
            from agentworld.train import world_rl
        checkpoint = world_rl.run(settings.rl, Path(data), model_of(Path(parent)), out, tick)
        check_unchanged(checkpoint, inputs)
        return checkpoint.artifact

    return str(
        run_step(
            Path(store), "rl", parts_of("rl", settings), inputs, work, domains=domains_of(data)
        )
    )
