"""Closes the agent's run with the digest of its weights and the step key's signature."""

import asyncio
from pathlib import Path

from agentworld.operations.ledger import ledger_digest, step_signer
from agentworld.operations.runs import run_backend
from agentworld.records.base import Digest
from agentworld.records.progress import OnProgress
from agentworld.records.run import AgentRun, RunClosing
from agentworld.runner.folders import PRACTICE, RUN, Practice
from agentworld.runner.task import Plan, Task
from agentworld.signing.weights import RunWeights, sign_weights
from agentworld.storage.simulators import SimulatorStore


def plan(task: Task) -> Plan:
    """Writes the closed run; a killed step closes it once."""
    weights = task.digests["agent"]
    run = Practice.read(task.folders["agent"] / PRACTICE).run

    def work(out: Path, _: OnProgress) -> Digest:
        closed_run = asyncio.run(_close(run, weights, task.store))
        closed_run.write(out / RUN)
        return closed_run.digest

    return Plan(work, {"run": run.digest, "ledger": ledger_digest()})


async def _close(run: AgentRun, weights: Digest, store: Path) -> AgentRun:
    signer = step_signer(store)
    run_weights = RunWeights(run=run.id, simulator=run.simulator, weights=weights)
    closing = RunClosing(final_weights=weights, signature=sign_weights(run_weights, signer))
    async with run_backend(SimulatorStore(store).find(run.simulator), store) as backend:
        current = await backend.get(run.id)
        # accepted even if the key was rotated since
        if current.final_weights == weights:
            return current
        return await backend.close(run.id, closing)
