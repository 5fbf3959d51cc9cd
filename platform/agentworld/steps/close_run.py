"""Step 14: the agent's run is closed with the weights that it made, which are signed."""

import asyncio
from pathlib import Path

from agentworld.operations.keys import step_signer
from agentworld.operations.ledger import ledger_digest
from agentworld.operations.runs import desk
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
from agentworld.records.run import AgentRun, RunClosing
from agentworld.runner.folders import PRACTICE, RUN, Practice
from agentworld.runner.remote import anywhere
from agentworld.runner.step import output_of, run_step
from agentworld.signing.weights import RunWeights, sign_weights
from agentworld.storage.simulators import SimulatorStore


@anywhere()
def close_run(store: str, agent: str) -> str:
    """The folder of the run as it was closed; a step that was killed closes it once."""
    weights = output_of(agent)
    run = Practice.read(Path(agent) / PRACTICE).run

    def work(out: Path, _: Tick) -> Digest:
        closed = asyncio.run(_closed(run, weights, Path(store)))
        closed.write(out / RUN)
        return closed.digest

    inputs = {"agent": weights, "run": run.digest, "ledger": ledger_digest()}
    return str(run_step(Path(store), "close_run", [], inputs, work))


async def _closed(run: AgentRun, weights: Digest, store: Path) -> AgentRun:
    signer = step_signer(store)
    run_weights = RunWeights(run=run.id, simulator=run.simulator, weights=weights)
    closing = RunClosing(final_weights=weights, signature=sign_weights(run_weights, signer))
    async with desk(SimulatorStore(store).find(run.simulator), store) as at:
        current = await at.get(run.id)
        # Signed by a key that was rotated since, it is closed all the same.
        if current.final_weights == weights:
            return current
        return await at.close(run.id, closing)
