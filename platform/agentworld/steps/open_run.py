"""Step 12: the agent's run is opened, with its first weights and its simulator for good."""

import asyncio
from pathlib import Path

from agentworld.operations.ledger import ledger_digest
from agentworld.operations.runs import desk
from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.records.run import AgentRun, RunOpening
from agentworld.runner.code import code_digest
from agentworld.runner.folders import RUN, SELECTED_SIMULATOR, SelectedSimulator
from agentworld.runner.remote import anywhere
from agentworld.runner.run_name import run_name
from agentworld.runner.step import output_of, run_step
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore


@anywhere()
def open_run(recipe: str, store: str, imitated: str) -> str:
    """The folder of the run as it was opened; a step that was killed opens no second one."""
    settings = load_recipe(recipe_path(recipe))
    weights = output_of(imitated)
    digest = SelectedSimulator.read(Path(imitated) / SELECTED_SIMULATOR).simulator
    simulator = SimulatorStore(Path(store)).find(digest)
    opening = RunOpening(agent=settings.agent.name, starting_weights=weights, simulator=digest)

    def work(out: Path, _: Tick) -> Digest:
        run = asyncio.run(_opened(simulator, Path(store), opening, run_name(out)))
        run.write(out / RUN)
        return run.digest

    inputs = {
        "imitated": weights,
        "simulator": digest,
        "ledger": ledger_digest(),
        # Whatever trains the agent anew needs a run anew, for the last one is closed.
        "training": code_digest("agent"),
    }
    return str(run_step(Path(store), "open_run", [settings.agent], inputs, work))


async def _opened(
    simulator: PinnedSimulator, store: Path, opening: RunOpening, name: str
) -> AgentRun:
    async with desk(simulator, store) as at:
        return await at.open(opening, name)
