"""Aliases of simulators and of agents in use, with their history."""

import getpass
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentworld.errors import InputError
from agentworld_cli.show import DEFAULT_STORE, ExistingStore, Json, Store, check_digest, plain

if TYPE_CHECKING:
    from agentworld.records.statements.alias import AliasChange

app = typer.Typer(
    help="Point aliases at simulators, and at the agents in use.", no_args_is_help=True
)

_Alias = Annotated[
    str,
    typer.Argument(
        metavar="ALIAS",
        help="Of a simulator, such as stable, or of an agent, NAME@ALIAS: my-agent@production.",
    ),
]
_By = Annotated[
    str,
    typer.Option(
        metavar="WHO",
        callback=lambda by: by or user_name(),
        help="The person who decided; else your user name.",
    ),
]
_Reason = Annotated[str | None, typer.Option(metavar="TEXT", help="The reason, for the record.")]


_Target = Annotated[
    str,
    typer.Argument(
        metavar="SIMULATOR|AGENT",
        help="A simulator's digest or alias, or a registered agent, NAME@VERSION.",
    ),
]
_Gates = Annotated[
    list[str],
    typer.Option(
        "--gate",
        metavar="METRIC=LEAST",
        help="The least value that a figure of the report must have; repeatable.",
    ),
]
_GateReport = Annotated[
    str | None,
    typer.Option(
        metavar="DIGEST",
        callback=check_digest,
        help="The attached report that must pass the gate.",
    ),
]
_Override = Annotated[
    str | None,
    typer.Option(metavar="REASON", help="Move the alias although the gate fails, for this reason."),
]


@app.command("set")
def set_(
    alias: _Alias,
    target: _Target,
    gates: _Gates = [],  # noqa: B006 - typer reads it and changes nothing
    gate_report: _GateReport = None,
    override: _Override = None,
    by: _By = "",
    reason: _Reason = None,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Point an alias at a simulator, or record which agent is in use under it.

    The change is signed. A run that is open keeps its simulator. The alias's history records the
    gate, the report's figures, who moved it and why.
    """
    from agentworld.lineage.base import VersionRef
    from agentworld.operations.aliases import due_by, set_agent_alias
    from agentworld.operations.simulators import MoveConditions, set_alias
    from agentworld.records.gate import Gate
    from agentworld.records.statements.alias import alias_kind

    conditions = MoveConditions(tuple(map(Gate.parse, gates)), gate_report, override)
    if alias_kind(alias) == "agent":
        if any(conditions):
            raise InputError(f"{alias} is an alias of an agent, which has no gate; leave it out")
        change = set_agent_alias(alias, VersionRef.parse(target), Path(store), by, reason)
    else:
        change = set_alias(alias, target, Path(store), by, conditions, reason=reason)
    due = due_by(change, Path(store)) if change and change.kind == "simulator" else {}
    problems = [
        f"{agent}: {revalidation.problem}"
        for agent, revalidation in sorted(due.items())
        if revalidation.problem
    ]
    if as_json:
        notices = {"revalidate": sorted(due), "problems": problems}
        nonempty = {name: names for name, names in notices.items() if names}
        print(json.dumps(_json(alias, change) | nonempty, indent=2))
        return
    print(_describe(alias, change))
    for agent in sorted(due):
        print(f"revalidate {plain(agent)}: it was trained in {due[agent].trained_in}")
    for problem in problems:
        print(plain(problem))


@app.command()
def end(
    alias: _Alias,
    by: _By = "",
    reason: _Reason = None,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """End an alias: it points at nothing, and its history stays. The change is signed."""
    from agentworld.operations.aliases import end_alias

    change = end_alias(alias, Path(store), by, reason)
    print(json.dumps(_json(alias, change), indent=2) if as_json else _describe(alias, change))


@app.command()
def show(alias: _Alias, store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """Print every move of an alias; the last line is what it points at now."""
    from agentworld.operations.simulators import alias_history

    _show(alias_history(Path(store), alias), as_json=as_json)


@app.command("list")
def list_(store: ExistingStore = DEFAULT_STORE, as_json: Json = False) -> None:
    """Print every alias and what it points at now."""
    from agentworld.operations.simulators import alias_history

    newest = {change.alias: change for change in alias_history(Path(store))}
    _show([newest[alias] for alias in sorted(newest) if not newest[alias].ended], as_json=as_json)


def _show(changes: "Sequence[AliasChange]", *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([_json(change.alias, change) for change in changes], indent=2))
        return
    for change in changes:
        print(describe_change(change))


def describe_change(change: "AliasChange") -> str:
    """The change as text: its target, since when, by whom, and the gate's results."""
    by = plain(change.set_by)
    line = f"{change.alias}  {change.target}  since {change.at}, set by {by}"
    if change.ended:
        line = f"{change.alias}  nothing  since {change.at}, ended by {by}"
    if change.canary:
        line += f", {change.canary.percent} % of runs with {change.canary.simulator}"
    if change.report:
        line += f", shown by {change.report}"
    for result in change.gate:
        figure = "not in the report" if result.value is None else f"{result.value:g}"
        line += f", {plain(result.metric)} {figure} of at least {result.least:g}"
    if change.override:
        line += f", gate overridden: {plain(change.override)}"
    if change.reason:
        line += f": {plain(change.reason)}"
    return line


def _describe(alias: str, change: "AliasChange | None") -> str:
    """Null is a change of an agent's alias that the service did not show to this caller."""
    if change is None:
        return f"{alias}  recorded by the service, which shows its history to auditors only"
    return describe_change(change)


def _json(alias: str, change: "AliasChange | None") -> dict[str, object]:
    """The change as JSON; missing values are left out."""
    return change.model_dump(mode="json", exclude_defaults=True) if change else {"alias": alias}


def user_name() -> str:
    """The caller's user name on this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return f"user {os.getuid()}"
