"""Step 13: the agent learns by RL in its run's simulator alone."""

import asyncio
from pathlib import Path

from agentworld.client.trajectory import TrajectoryLog
from agentworld.operations.ledger import ledger_digest
from agentworld.operations.serving import reached
from agentworld.recipes import Recipe, load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.progress import Tick
from agentworld.records.run import AgentRun
from agentworld.runner.folders import PRACTICE, RUN, TRAJECTORY, Practice, model_of, once
from agentworld.runner.frozen_gc import frozen_gc
from agentworld.runner.remote import anywhere
from agentworld.runner.step import output_of, run_step
from agentworld.runner.training_guard import no_live_shell


@anywhere("imitated")
def agent(recipe: str, store: str, imitated: str, run: str) -> str:
    """The folder of the trained agent, of its own log, and of the run that it trained in."""
    settings = load_recipe(recipe_path(recipe))
    parents = {"imitated": output_of(imitated), "run": output_of(run)}
    opened = AgentRun.read(Path(run) / RUN)

    def work(out: Path, tick: Tick) -> Digest:
        with no_live_shell() as guard:
            parent = model_of(Path(imitated))
            checkpoint = once(
                out, lambda: _practise(settings, parent, opened, Path(store), out, tick)
            )
        Practice(run=opened, live_steps=guard.num_refused).write(out / PRACTICE)
        return checkpoint.artifact

    inputs = {**parents, "simulator": opened.simulator, "ledger": ledger_digest()}
    return str(run_step(Path(store), "agent", [settings.agent], inputs, work))


def _practise(
    recipe: Recipe, parent: Path, run: AgentRun, store: Path, out: Path, tick: Tick
) -> Checkpoint:
    with frozen_gc():
        from agentworld.train import agent_rl
    with (
        TrajectoryLog(out / TRAJECTORY) as acted,
        reached(run.simulator, recipe.engine.concurrency, store, out / "logs", acted) as client,
    ):
        asyncio.run(client.resume_run(run.id))
        return agent_rl.run(recipe.agent, parent, client, run.simulator, out, tick)
