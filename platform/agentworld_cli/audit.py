"""The auditor's questions."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.tree import Tree

from agentworld_cli.show import DEFAULT_STORE, Json, Store, brief, trees

app = typer.Typer(help="Which simulator trained which agent.", no_args_is_help=True)


@app.command()
def agent(
    version: Annotated[str, typer.Argument(metavar="NAME@VERSION", help="A registered agent.")],
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Print the chain from an agent back to its data."""
    from agentworld.audit.chain import audit_agent
    from agentworld.lineage.base import VersionRef
    from agentworld.steps.addresses import open_sources

    chain = audit_agent(VersionRef.parse(version), open_sources(Path(store)))
    if as_json:
        print(chain.model_dump_json(indent=2))
        return
    tree = Tree(f"agent [bold]{chain.agent}[/] {brief(chain.artifact)}")
    run = tree.add(f"run {chain.run.id}: {_served(chain.run.num_episodes, chain.run.num_steps)}")
    simulator = run.add(f"simulator {chain.simulator}")
    world = simulator.add(f"world model {chain.world_model} {brief(chain.world_model_artifact)}")
    for stage in reversed(chain.stages):
        world = world.add(f"{stage.stage} {brief(stage.artifact)}, recipe {brief(stage.recipe)}")
    world.add(f"data {chain.data}")
    if chain.live:
        live = chain.live
        words = f"{live.successes_before} successes before training, {live.successes_after} after"
        tree.add(f"live: {live.episodes} episodes, {live.commands} commands, {words}")
    for broken in chain.breaks:
        tree.add(f"[red]broken: {escape(broken)}[/]")
    trees.print(tree)


@app.command()
def simulator(
    digest: Annotated[
        str, typer.Argument(metavar="DIGEST", help="A simulator's digest, or its start.")
    ],
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Print the agents that a simulator trained."""
    from agentworld.audit.touched import audit_simulator
    from agentworld.steps.addresses import open_sources

    found = audit_simulator(digest, open_sources(Path(store)))
    if as_json:
        print(found.model_dump_json(indent=2))
        return
    tree = Tree(f"simulator {found.simulator}")
    tree.add(f"world model {found.world_model} {brief(found.world_model_artifact)}")
    for made in found.agents:
        branch = tree.add(f"agent [bold]{made.agent}[/] {brief(made.artifact)}")
        branch.add(f"run {made.run.id}: {_served(made.run.num_episodes, made.run.num_steps)}")
    for run in found.other_runs:
        served = _served(run.num_episodes, run.num_steps)
        tree.add(f"{run.opening.purpose} run {run.id} of {run.opening.agent}: {served}")
    trees.print(tree)


def _served(num_episodes: int, num_steps: int) -> str:
    return f"{num_episodes} episodes, {num_steps} steps served"
