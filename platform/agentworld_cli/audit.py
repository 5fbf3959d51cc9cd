"""The auditor's questions."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from agentworld_cli.alias import told_change
from agentworld_cli.audit_record import export, restored, verify, withdrawn
from agentworld_cli.moment import At, sources_at, then
from agentworld_cli.plain import plain
from agentworld_cli.show import DEFAULT_STORE, Json, Store, brief, show_json, trees
from agentworld_cli.verification import by_how_much, check_names

if TYPE_CHECKING:
    from agentworld.audit.checks.edges import EdgeAudit
    from agentworld.audit.checks.run import RunVerification
    from agentworld.audit.questions.simulator import TrainedAgent

app = typer.Typer(help="Which simulator trained which agent.", no_args_is_help=True)

_Verify = Annotated[bool, typer.Option("--verify", help="Read every step of the runs again.")]


@app.command()
def agent(
    version: Annotated[str, typer.Argument(metavar="NAME@VERSION", help="A registered agent.")],
    verify: _Verify = False,
    at: At = "",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Print the chain from an agent back to its data."""
    from agentworld.audit.questions.agent import audit_agent
    from agentworld.lineage.base import VersionRef

    chain = audit_agent(VersionRef.parse(version), sources_at(store, at), verify=verify)
    if as_json:
        show_json(chain)
        return
    tree = Tree(f"agent [bold]{_shown(chain.agent)}[/] {brief(chain.artifact)}{then(chain.at)}")
    run = tree.add(f"run {chain.run.id}: {by_how_much(chain.run, chain.edge)}")
    run.add(_graded(chain.edge))
    if chain.evidence:
        run.add(f"record {chain.evidence.state}")
    simulator = run.add(f"simulator {chain.simulator}")
    name = _shown(chain.world_model)
    world = simulator.add(f"world model {name} {brief(chain.world_model_artifact)}")
    for stage in reversed(chain.stages):
        world = world.add(f"{stage.stage} {brief(stage.artifact)}, recipe {brief(stage.recipe)}")
    for base in chain.base:
        world.add(f"base {base}")
    world.add(f"data {chain.data}")
    if live := chain.live:
        gain = live.gain
        words = f"{live.successes_before} successes before RL, {live.successes_after} after"
        words += f" ({gain.mean:+.3f}, {gain.low:+.3f} to {gain.high:+.3f}{gain.caveat})"
        signed = "" if live.signed else ", unsigned"
        tree.add(f"live: {live.episodes} episodes, {live.commands} commands, {words}{signed}")
    if chain.in_use_as:
        tree.add(f"in use as {_shown(', '.join(chain.in_use_as))}")
    for reason in chain.revalidate:
        tree.add(f"[red]revalidate: {_shown(str(reason))}[/]")
    for broken in chain.breaks:
        tree.add(f"[red]broken: {_shown(broken)}[/]")
    for missing in chain.incomplete:
        tree.add(f"incomplete: {_shown(missing)}")
    trees.print(tree)


@app.command()
def simulator(
    digest: Annotated[
        str,
        typer.Argument(
            metavar="DIGEST|ALIAS", help="A simulator's digest, its start, or an alias."
        ),
    ],
    verify: _Verify = False,
    at: At = "",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Print the agents that a simulator trained."""
    from agentworld.audit.questions.simulator import audit_simulator

    found = audit_simulator(digest, sources_at(store, at), verify=verify)
    if as_json:
        show_json(found)
        return
    tree = Tree(f"simulator {found.simulator}{then(found.at)}")
    tree.add(f"world model {_shown(found.world_model)} {brief(found.world_model_artifact)}")
    for made in found.agents:
        _add_evidence(_add_agent(tree, made), found.evidence.get(made.run.id))
    for edge in found.unregistered:
        tree.add(f"[red]not in the registry: {_shown(edge.claim.agent)} of run {edge.run}[/]")
    for run in found.other_runs:
        agent = _shown(run.opening.agent)
        ran = tree.add(f"{run.opening.purpose} run {run.id} of {agent}: {by_how_much(run, None)}")
        _add_evidence(ran, found.evidence.get(run.id))
    for problem in found.problems:
        tree.add(f"[red]broken: {_shown(problem)}[/]")
    trees.print(tree)


@app.command()
def dataset(
    digest: Annotated[
        str, typer.Argument(metavar="DIGEST", help="A data set's digest, or its start.")
    ],
    at: At = "",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Print the world models that read a data set, and the agents that they trained."""
    from agentworld.audit.questions.dataset import audit_dataset

    found = audit_dataset(digest, sources_at(store, at))
    if as_json:
        show_json(found)
        return
    tree = Tree(f"data {found.data}{then(found.at)}")
    for reader in found.world_models:
        name, stages = _shown(reader.world_model), ", ".join(reader.stages)
        tree.add(f"world model {name} {brief(reader.artifact)}: read by {stages}")
    for served in found.simulators:
        branch = tree.add(f"simulator {served.simulator} of {_shown(served.world_model)}")
        for made in served.agents:
            _add_agent(branch, made)
    trees.print(tree)


@app.command()
def alias(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name for simulators.")],
    at: At = "",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Print what a name meant at a moment, who moved it there, and who moved it on."""
    from agentworld.audit.questions.alias import audit_alias, moment
    from agentworld.operations.simulators import alias_history

    now = datetime.now(UTC)
    asked = moment(at, now) if at else now
    found = audit_alias(name, alias_history(Path(store), name), asked)
    if as_json:
        show_json(found)
    else:
        print(f"{plain(name)} at {found.at}: {found.simulator or 'nothing'}")
        changes = (("by", found.since), ("until", found.until))
        print(*(f"{word}  {told_change(each)}" for word, each in changes if each), sep="\n")
    check_names(Path(store), as_json=as_json)


@app.command()
def diff(
    first: Annotated[str, typer.Argument(metavar="NAME@VERSION", help="A registered agent.")],
    second: Annotated[str, typer.Argument(metavar="NAME@VERSION", help="Another one.")],
    at: At = "",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Print what two agents do not have in common, from their weights back to their data."""
    from agentworld.audit.questions.difference import audit_diff
    from agentworld.lineage.base import VersionRef

    refs = VersionRef.parse(first), VersionRef.parse(second)
    found = audit_diff(*refs, sources_at(store, at))
    if as_json:
        show_json(found)
        return
    if found.at:
        trees.print(f"at {found.at}")
    table = Table("what", _shown(found.first), _shown(found.second), box=SIMPLE_HEAD)
    for each in found.differences:
        table.add_row(_shown(each.what), _value(each.first), _value(each.second))
    trees.print(table if found.differences else "the same things made both")


app.command()(verify)
app.command()(export)
app.command()(restored)
app.command()(withdrawn)


def _add_agent(tree: Tree, made: "TrainedAgent") -> Tree:
    """The branch of its run."""
    branch = tree.add(f"agent [bold]{_shown(made.agent)}[/] {brief(made.artifact)}")
    ran = branch.add(f"run {made.run.id}: {by_how_much(made.run, made.edge)}")
    ran.add(_graded(made.edge))
    return ran


def _value(told: object) -> str:
    """A digest in brief, a text as it is, else as JSON; null where there is no such thing."""
    if isinstance(told, str):
        return brief(told) if told.startswith("sha256:") else _shown(told)
    return json.dumps(told)


def _shown(text: str | None) -> str:
    return escape(plain(str(text)))


def _graded(found: "EdgeAudit | None") -> str:
    if found is None:
        return "edge unsigned: the store has no keys"
    return f"edge {found.grade}{': ' if found.reasons else ''}{_shown('; '.join(found.reasons))}"


def _add_evidence(branch: Tree, found: "RunVerification | None") -> None:
    if found is None:
        return
    record = branch.add(f"record {found.state}")
    for problem in found.problems:
        record.add(f"[red]broken: {_shown(problem)}[/]")
