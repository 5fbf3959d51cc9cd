"""Step 13: the agent learns by RL in its run's simulator alone."""

import asyncio
from functools import partial
from pathlib import Path

from agentworld.client.trajectory import TrajectoryLog
from agentworld.domains.live import live_domain, no_environment
from agentworld.operations.ledger import ledger_digest
from agentworld.operations.serving import reached
from agentworld.operations.simulators import domain_of_agent, resolve_simulator
from agentworld.recipes import Recipe, load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.progress import Tick
from agentworld.records.run import AgentRun
from agentworld.runner.folders import PRACTICE, RUN, TRAJECTORY, Practice, model_of, once
from agentworld.runner.frozen_gc import frozen_gc
from agentworld.runner.remote import anywhere
from agentworld.runner.step import output_of, run_step


@anywhere("imitated")
def agent(recipe: str, store: str, imitated: str, run: str) -> str:
    """The folder of the trained agent, of its own log, and of the run that it trained in."""
    settings = load_recipe(recipe_path(recipe))
    parents = {"imitated": output_of(imitated), "run": output_of(run)}
    opened = AgentRun.read(Path(run) / RUN)
    domain = domain_of_agent(settings, resolve_simulator(opened.simulator, Path(store)))

    def work(out: Path, tick: Tick) -> Digest:
        with no_environment() as guard:
            parent = model_of(Path(imitated))
            checkpoint = once(
                out,
                lambda: _practise(settings, domain, parent, opened, Path(store), out, tick),
            )
        Practice(run=opened, live_steps=guard.num_refused).write(out / PRACTICE)
        return checkpoint.artifact

    inputs = {**parents, "simulator": opened.simulator, "ledger": ledger_digest()}
    step = run_step(Path(store), "agent", [settings.agent], inputs, work, domains=[domain])
    return str(step)


def _practise(
    recipe: Recipe,
    domain: str,
    parent: Path,
    run: AgentRun,
    store: Path,
    out: Path,
    tick: Tick,
) -> Checkpoint:
    with frozen_gc():
        from agentworld.train import agent_rl
    with (
        TrajectoryLog(out / TRAJECTORY) as acted,
        reached(run.simulator, recipe.engine.concurrency, store, out / "logs", acted) as client,
    ):
        asyncio.run(client.resume_run(run.id))
        task_of = live_domain(domain).task
        practice = agent_rl.Practice(client, run.simulator, partial(task_of, held_out=False))
        return agent_rl.run(recipe.agent, parent, practice, out, tick)
