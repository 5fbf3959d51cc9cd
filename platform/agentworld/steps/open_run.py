"""Opens the agent's run, with its first weights and its simulator."""

import asyncio
from pathlib import Path

from agentworld.operations.ledger import ledger_digest
from agentworld.operations.runs import run_backend
from agentworld.operations.simulators import domain_of_agent
from agentworld.records.base import Digest
from agentworld.records.progress import OnProgress
from agentworld.records.run import AgentRun, RunOpening
from agentworld.runner.code import code_digest
from agentworld.runner.folders import RUN, SELECTED_SIMULATOR, SelectedSimulator
from agentworld.runner.run_name import run_name
from agentworld.runner.task import Plan, Task
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore


def plan(task: Task) -> Plan:
    """Writes the opened run; a killed step opens no second one."""
    digest = SelectedSimulator.read(task.folders["imitated"] / SELECTED_SIMULATOR).simulator
    simulator = SimulatorStore(task.store).find(digest)
    opening = RunOpening(
        agent=task.recipe.agent.name,
        starting_weights=task.digests["imitated"],
        simulator=digest,
    )

    def work(out: Path, _: OnProgress) -> Digest:
        run = asyncio.run(_open(simulator, task.store, opening, run_name(out)))
        run.write(out / RUN)
        return run.digest

    inputs = {
        "simulator": digest,
        "ledger": ledger_digest(),
        # A repeated training needs a new run, because the last one is closed.
        "training": code_digest("agent", (domain_of_agent(task.recipe, simulator),)),
    }
    return Plan(work, inputs)


async def _open(
    simulator: PinnedSimulator, store: Path, opening: RunOpening, name: str
) -> AgentRun:
    async with run_backend(simulator, store) as backend:
        return await backend.open(opening, name)
