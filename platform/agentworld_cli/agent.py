"""Agents: their live validation, and their versions."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from agentworld_cli.show import (
    DEFAULT_RECIPE,
    DEFAULT_STORE,
    AnyStore,
    Json,
    RecipeName,
    Store,
    brief,
    check_none,
    plain,
    show_json,
    show_step,
    trees,
)
from agentworld_cli.steps import add_steps, folder_help

if TYPE_CHECKING:
    from agentworld.audit.questions.agents import AgentsAudit, AgentSummary

app = typer.Typer(help="Validate, register and list agents.", no_args_is_help=True)
add_steps(app, "agent", excluded=["register"])

_Agent = Annotated[str, typer.Option(metavar="FOLDER", help=folder_help("agent"))]


@app.command()
def register(
    agent: _Agent,
    validation: Annotated[str, typer.Option(metavar="FOLDER", help=folder_help("validate"))],
    recipe: RecipeName = DEFAULT_RECIPE,
    store: AnyStore = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Register a validated agent as a new version."""
    from agentworld.steps.run import run_by_name

    def run_steps() -> str:
        run_folder = run_by_name("close_run", recipe, store, agent)
        return run_by_name("register_agent", recipe, store, agent, run_folder, validation)

    show_step(run_steps, as_json=as_json)


@app.command()
def adopt(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL_FOLDER",
            help="The folder of the model: weights, tokenizer and configuration.",
        ),
    ],
    run: Annotated[str, typer.Option(metavar="RUN", help="The closed run that made the weights.")],
    name: Annotated[
        str, typer.Option(metavar="NAME", help="The name to register the agent under.")
    ],
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Register an agent that your own trainer trained in a run of a simulator."""
    from agentworld.operations.adopt import ADOPTED, AdoptionResult, adopt

    with redirect_stdout(sys.stderr):
        folder = adopt(store, model, run, name)
    adoption = AdoptionResult.read(Path(folder) / ADOPTED)
    if as_json:
        show_json({"folder": folder, **adoption.model_dump(mode="json")})
        return
    print(f"{adoption.version}  {adoption.grade}  {plain(folder)}")
    for reason in adoption.reasons:
        print(f"disputed: {plain(reason)}")


@app.command("list")
def list_(store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """List the registered agents, where each is in use, and which need a new validation.

    State `revalidate`: an alias of the agent's simulator moved after its last validation. Run
    `agent validate` with the new simulator. `alias set` records a use. The command exits with 8 if
    a record is broken.
    In the console: /agents and /in-use.
    """
    from agentworld.audit.questions.agents import audit_agents
    from agentworld.operations.aliases import mirror
    from agentworld.operations.ledger import open_sources

    sources = open_sources(Path(store))
    audit = audit_agents(sources)
    mirror(
        {summary.agent: summary.revalidate for summary in audit.agents}, lambda: sources.registry
    )
    if as_json:
        show_json(audit)
    else:
        _show_agents(audit)
    check_none("what is in use, or what an alias points at, is not what was signed", audit.problems)


def _show_agents(audit: "AgentsAudit") -> None:
    table = Table("agent", "edge", "simulator", "live", "in use as", "state", box=SIMPLE_HEAD)
    for summary in audit.agents:
        table.add_row(*_row(summary))
    trees.print(table if audit.agents else "no agent is registered")
    for summary in audit.agents:
        for reason in summary.revalidate:
            trees.print(f"{_to_markup(summary.agent)}: {_to_markup(str(reason))}")
    for problem in audit.problems:
        trees.print(f"[red]broken: {_to_markup(problem)}[/]")


def _row(summary: "AgentSummary") -> tuple[str, ...]:
    live = "-" if summary.live_success is None else f"{summary.live_success:.0%}"
    state = f"[red]{summary.state}[/]" if summary.revalidate else summary.state or "-"
    aliases = ", ".join(summary.in_use_as) or "-"
    cells = (summary.agent, summary.grade or "unsigned", brief(summary.simulator), live, aliases)
    return *map(_to_markup, cells), state


def _to_markup(text: str) -> str:
    return escape(plain(text))
