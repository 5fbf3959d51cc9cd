"""Trains the agent by RL in its run's simulator only."""

import asyncio
from functools import partial
from pathlib import Path

from agentworld.client.trajectory import TrajectoryLog
from agentworld.domains.live import live_domain, no_environment
from agentworld.operations.ledger import ledger_digest
from agentworld.operations.serving import open_client
from agentworld.operations.simulators import domain_of_agent, resolve_simulator
from agentworld.recipes import Recipe
from agentworld.records.base import Digest
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.progress import OnProgress
from agentworld.records.run import AgentRun
from agentworld.runner.folders import PRACTICE, RUN, TRAJECTORY, Practice, reuse_or_train
from agentworld.runner.frozen_gc import frozen_gc
from agentworld.runner.task import Plan, Task
from agentworld.steps.start import check_rates, parent_of
from agentworld.train.parent import Parent


def plan(task: Task) -> Plan:
    """Writes the trained agent, its own log, and the run that it trained in."""
    run = AgentRun.read(task.folders["run"] / RUN)
    simulator = resolve_simulator(run.simulator, task.store)
    domain = domain_of_agent(task.recipe, simulator)
    parent = parent_of(task.folders["imitated"])
    check_rates("agent.rl", task.recipe.agent.rl, from_scratch=parent.from_scratch)

    def work(out: Path, on_progress: OnProgress) -> Digest:
        with no_environment() as guard:
            checkpoint = reuse_or_train(
                out,
                lambda: _practise(task.recipe, domain, parent, run, task.store, out, on_progress),
            )
        Practice(run=run, live_steps=guard.num_refused).write(out / PRACTICE)
        return checkpoint.artifact

    inputs = {"simulator": run.simulator, "ledger": ledger_digest()}
    return Plan(work, inputs, domains=[domain])


def _practise(
    recipe: Recipe,
    domain: str,
    parent: Parent,
    run: AgentRun,
    store: Path,
    out: Path,
    on_progress: OnProgress,
) -> Checkpoint:
    with frozen_gc():
        from agentworld.train import agent_rl
    with (
        TrajectoryLog(out / TRAJECTORY) as trajectory_log,
        open_client(
            run.simulator, recipe.engine.concurrency, store, out / "logs", trajectory_log
        ) as client,
    ):
        asyncio.run(client.resume_run(run.id))
        task_of = partial(live_domain(domain).task, held_out=False)
        practice = agent_rl.Practice(client, run.simulator, task_of)
        return agent_rl.run(recipe.agent, parent, practice, out, on_progress)
