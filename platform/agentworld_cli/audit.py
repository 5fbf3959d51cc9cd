"""The audit commands about one subject: an agent, a simulator, a data set, a comparison."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from agentworld_cli.audit_record import alias, export, restored, verify, withdrawn
from agentworld_cli.show import (
    DEFAULT_STORE,
    At,
    Json,
    Store,
    brief,
    by_how_much,
    format_moment,
    plain,
    show_json,
    sources_at,
    trees,
)

if TYPE_CHECKING:
    from agentworld.audit.checks.edges import EdgeAudit
    from agentworld.audit.checks.validation import LiveLink
    from agentworld.audit.questions.agent import BaseLink, DataLink, StageLink
    from agentworld.audit.questions.simulator import AgentOrigin
    from agentworld.audit.read.evidence import Finding

app = typer.Typer(help="Show and verify which simulator trained which agent.", no_args_is_help=True)

_Verify = Annotated[
    bool, typer.Option("--verify", help="Also verify every step of the run, or of all runs.")
]


@app.command()
def agent(
    version: Annotated[str, typer.Argument(metavar="NAME@VERSION", help="A registered agent.")],
    verify: _Verify = False,
    at: At = "",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Show what an agent is made of: its run, simulator, world model and data.

    Also shows the grade of the edge to the simulator, who signed it and when, and the agent's
    success in the live environment. In the console: /agents/NAME@VERSION.
    """
    from agentworld.audit.questions.agent import audit_agent
    from agentworld.lineage.base import VersionRef

    chain = audit_agent(VersionRef.parse(version), sources_at(store, at), verify=verify)
    if as_json:
        show_json(chain)
        return
    since = f", registered {_minute(chain.registered_at)}" if chain.registered_at else ""
    name = f"[bold]{_to_markup(chain.subject)}[/] {brief(chain.artifact)}"
    tree = Tree(f"agent {name}{since}{format_moment(chain.at)}")
    run = tree.add(f"run {chain.run.id}: {by_how_much(chain.run, chain.edge)}")
    _add_edge(run, chain.edge)
    if chain.evidence:
        run.add(f"record {chain.evidence.grade}")
    simulator = run.add(f"simulator {chain.simulator}")
    name = _to_markup(chain.world_model)
    world = simulator.add(f"world model {name} {brief(chain.world_model_artifact)}")
    world = _add_stages(world, chain.stages)
    _add_bases(world, chain.bases)
    if chain.data:
        world.add(f"data {chain.data}").add(_describe_data(chain.data_set))
    if chain.live:
        counts = f"{chain.live.episodes:,} episodes, {chain.live.commands:,} commands"
        tree.add(_describe_live(chain.live)).add(counts)
    if chain.in_use_as:
        tree.add(f"in use as {_to_markup(', '.join(chain.in_use_as))}")
    for reason in chain.revalidate:
        tree.add(f"[red]revalidate: {_to_markup(str(reason))}[/]")
    _add_problems(tree, chain.problems)
    for missing in chain.notes:
        tree.add(f"incomplete: {_to_markup(missing)}")
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
    """Show the agents that a simulator trained, and its other runs.

    In the console: /simulators/DIGEST.
    """
    from agentworld.audit.questions.simulator import audit_simulator

    audit = audit_simulator(digest, sources_at(store, at), verify=verify)
    if as_json:
        show_json(audit)
        return
    tree = Tree(f"simulator {audit.simulator}{format_moment(audit.at)}")
    tree.add(f"world model {_to_markup(audit.world_model)} {brief(audit.world_model_artifact)}")
    for trained_agent in audit.agents:
        _add_evidence(_add_agent(tree, trained_agent), audit.evidence.get(trained_agent.run.id))
    for edge in audit.unregistered:
        tree.add(f"[red]not in the registry: {_to_markup(edge.claim.agent)} of run {edge.run}[/]")
    for run in audit.other_runs:
        agent = _to_markup(run.opening.agent)
        ran = tree.add(f"{run.opening.purpose} run {run.id} of {agent}: {by_how_much(run, None)}")
        _add_evidence(ran, audit.evidence.get(run.id))
    _add_problems(tree, audit.problems)
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
    """Show the world models that were trained on a data set, and the agents that they trained.

    In the console: /datasets/DIGEST.
    """
    from agentworld.audit.questions.dataset import audit_dataset

    audit = audit_dataset(digest, sources_at(store, at))
    if as_json:
        show_json(audit)
        return
    tree = Tree(f"data {audit.data}{format_moment(audit.at)}")
    for reader in audit.world_models:
        name, stages = _to_markup(reader.world_model), ", ".join(reader.stages)
        origin = f"started from {_to_markup(reader.base)}" if reader.base else f"read by {stages}"
        tree.add(f"world model {name} {brief(reader.artifact)}: {origin}")
    for entry in audit.simulators:
        branch = tree.add(f"simulator {entry.simulator} of {_to_markup(entry.world_model)}")
        for trained_agent in entry.agents:
            _add_agent(branch, trained_agent)
    trees.print(tree)


def diff(
    first: Annotated[str, typer.Argument(metavar="NAME@VERSION", help="A registered agent.")],
    second: Annotated[str, typer.Argument(metavar="NAME@VERSION", help="Another agent.")],
    at: At = "",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Show how two agents differ, from their weights back to their data."""
    from agentworld.audit.questions.difference import audit_diff
    from agentworld.lineage.base import VersionRef

    refs = VersionRef.parse(first), VersionRef.parse(second)
    audit = audit_diff(*refs, sources_at(store, at))
    if as_json:
        show_json(audit)
        return
    if audit.at:
        trees.print(f"at {audit.at}")
    table = Table("what", _to_markup(audit.first), _to_markup(audit.second), box=SIMPLE_HEAD)
    for difference in audit.differences:
        table.add_row(
            _to_markup(difference.what), _value(difference.first), _value(difference.second)
        )
    trees.print(table if audit.differences else "both have the same lineage")


app.command()(alias)
app.command()(diff)
app.command()(verify)
app.command()(export)
app.command()(restored)
app.command()(withdrawn)


def _add_agent(tree: Tree, agent: "AgentOrigin") -> Tree:
    """Adds the branch of its run."""
    branch = tree.add(f"agent [bold]{_to_markup(agent.agent)}[/] {brief(agent.artifact)}")
    ran = branch.add(f"run {agent.run.id}: {by_how_much(agent.run, agent.edge)}")
    ran.add(_describe_grade(agent.edge))
    return ran


def _value(value: object) -> str:
    """Shortens a digest; keeps other text; anything else as JSON; null if there is no value."""
    if isinstance(value, str):
        return brief(value) if value.startswith("sha256:") else _to_markup(value)
    return json.dumps(value)


def _to_markup(text: str | None) -> str:
    return escape(plain(str(text)))


def _describe_grade(edge: "EdgeAudit | None") -> str:
    if edge is None:
        return "edge unsigned: the store has no keys"
    problems = _to_markup("; ".join(edge.problems))
    return f"edge {edge.grade}{': ' if problems else ''}{problems}"


def _add_stages(world: Tree, stages: "Sequence[StageLink]") -> Tree:
    """Adds the stages; returns the first stage's tree."""
    for stage in reversed(stages):
        world = world.add(f"{stage.stage} {brief(stage.artifact)}, recipe {brief(stage.recipe)}")
        for name, use in stage.corpora.items():
            share = f"{use.share:.1%} of the tokens"
            world.add(f"corpus {_to_markup(name)} {brief(use.content)}, {share}")
    return world


def _add_bases(world: Tree, bases: "Sequence[BaseLink]") -> None:
    """Adds each base below the one that started from it."""
    for base in bases:
        name = f" {_to_markup(base.world_model)}" if base.world_model else ""
        source = f" from {_to_markup(base.address)}" if base.address else ""
        data = f", data {base.data}" if base.data else ""
        world = world.add(f"base {base.artifact}{name}{source}{data}")


def _add_edge(run: Tree, edge: "EdgeAudit | None") -> None:
    """Adds the grade with its meaning, the signature, and the reasons if it is disputed."""
    from agentworld.records.statements.edge import GRADE_MEANINGS

    if edge is None:
        run.add(_describe_grade(edge))
        return
    branch = run.add(f"edge {edge.grade}: {GRADE_MEANINGS[edge.grade]}")
    if edge.signature:
        signed, stored = map(_minute, (edge.signature.signed_at, edge.signature.ledger_at))
        branch.add(f"signed {signed} by key {edge.signature.key[:12]}, in the ledger {stored}")
    for reason in edge.problems:
        branch.add(_to_markup(reason))


def _describe_data(data: "DataLink | None") -> str:
    if data is None:
        return "not in this store"
    licences = f", licence {', '.join(data.licences)}" if data.licences else ""
    num = data.num_trajectories
    trajectories = f"{num:,} {'trajectory' if num == 1 else 'trajectories'}"
    return _to_markup(f"{trajectories} of {', '.join(data.domains)}, {data.origin}{licences}")


def _describe_live(live: "LiveLink") -> str:
    gain = live.gain
    change = f"{gain.mean:+.3f}, {gain.low:+.3f} to {gain.high:+.3f}{gain.caveat}"
    signed = "" if live.signature else ", unsigned"
    return (
        f"live: success in {live.successes_after:,} of {live.num_tasks:,} tasks, before RL in"
        f" {live.successes_before:,} ({change}){signed}"
    )


def _minute(at: "datetime | str") -> str:
    """Minutes in UTC, as in signed and registered times."""
    return f"{str(at)[:16].replace('T', ' ')} UTC"


def _add_evidence(branch: Tree, finding: "Finding | None") -> None:
    if finding:
        _add_problems(branch.add(f"record {finding.grade}"), finding.problems)


def _add_problems(branch: Tree, problems: Sequence[str]) -> None:
    for problem in problems:
        branch.add(f"[red]broken: {_to_markup(problem)}[/]")
