"""The agent learns by RL in its run's simulator alone."""

import asyncio
from pathlib import Path

from agentworld.client.trajectory import TrajectoryLog
from agentworld.operations.ledger import ledger_digest
from agentworld.operations.serving import reached
from agentworld.recipes import Recipe
from agentworld.records.base import Digest
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.progress import Tick
from agentworld.records.run import AgentRun
from agentworld.runner.folders import PRACTICE, RUN, TRAJECTORY, Practice, model_of, once
from agentworld.runner.frozen_gc import frozen_gc
from agentworld.runner.task import Plan, Task
from agentworld.runner.training_guard import no_live_shell


def plan(task: Task) -> Plan:
    """Writes the trained agent, its own log, and the run that it trained in."""
    opened = AgentRun.read(task.folders["run"] / RUN)

    def work(out: Path, tick: Tick) -> Digest:
        with no_live_shell() as guard:
            parent = model_of(task.folders["imitated"])
            checkpoint = once(
                out, lambda: _practise(task.recipe, parent, opened, task.store, out, tick)
            )
        Practice(run=opened, live_steps=guard.num_refused).write(out / PRACTICE)
        return checkpoint.artifact

    return Plan(work, {"simulator": opened.simulator, "ledger": ledger_digest()})


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
