"""Step 5: RL of the SFT checkpoint on what it predicts."""

from pathlib import Path

from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.steps.base import output_of, run_step
from agentworld.steps.folders import model_of
from agentworld.steps.heavy import lasting


def rl(recipe: str, store: str, data: str, parent: str) -> str:
    """The folder of the checkpoint."""
    part = load_recipe(recipe_path(recipe)).rl

    def work(out: Path, tick: Tick) -> Digest:
        with lasting():
            from agentworld.train import world_rl
        return world_rl.run(part, Path(data), model_of(Path(parent)), out, tick).artifact

    inputs = {"data": output_of(data), "parent": output_of(parent)}
    return str(run_step(Path(store), "rl", [part], inputs, work))
