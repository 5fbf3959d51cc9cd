"""Step 11: a policy imitates explorers, from the weights of the simulator that it will act in."""

from pathlib import Path

from agentworld.errors import InputError
from agentworld.operations.simulators import chosen_simulator, versions_of
from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.runner.folders import CHOSEN, Chosen, once
from agentworld.runner.frozen_gc import lasting
from agentworld.runner.remote import anywhere, fetch
from agentworld.runner.step import output_of, run_step
from agentworld.runner.training_guard import no_live_shell


@anywhere("collected")
def imitate(recipe: str, store: str, collected: str, simulator: str) -> str:
    """The folder of the agent that imitated, which also says for which simulator it is.

    That is found here and never again, by its folder, an alias or the start of its digest; empty
    means the alias that the recipe deploys to. Raises InputError for one without weights, or whose
    weights were never registered.
    """
    chosen = load_recipe(recipe_path(recipe))
    episodes = output_of(collected)
    found = chosen_simulator(simulator or chosen.deploy.alias, Path(store))
    if found.manifest.artifact is None:
        raise InputError(
            f"{found.digest} is the world of an endpoint, which has no weights that an agent could"
            " start from; name a simulator that was pinned"
        )
    if not versions_of(found, Path(store)):
        raise InputError(
            f"no registered version stands for the weights of {found.digest}, so that no agent of"
            " it could be followed back to its data; name a simulator of a registered world model"
        )

    def work(out: Path, tick: Tick) -> Digest:
        with lasting():
            from agentworld.train import imitation
        Chosen(simulator=found.digest).write(out / CHOSEN)
        with no_live_shell():
            return once(
                out,
                lambda: imitation.run(chosen.agent, Path(collected), fetch(found.model), out, tick),
            ).artifact

    inputs = {"collected": episodes, "simulator": found.digest}
    return str(run_step(Path(store), "imitate", [chosen.agent], inputs, work))
