"""The usage and the cost of runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from agentworld_cli.show import DEFAULT_STORE, Json, Store, plain, show_json

if TYPE_CHECKING:
    from agentworld.audit.questions.cost import Cost, Costs

_By = Literal["tenant", "agent", "run", "episode"]

_NAMES: dict[_By, tuple[str, ...]] = {
    "tenant": ("tenant",),
    "agent": ("agent", "tenant"),
    "run": ("run", "tenant", "agent"),
    "episode": ("episode", "run"),
}

# Numbers are never cut off; a narrower terminal wraps.
_wide = Console(width=1_000, highlight=False)
_WIDEST_NAME = 40


def cost(
    tenant: Annotated[str, typer.Option(metavar="TENANT", help="Show only this tenant.")] = "",
    run: Annotated[str, typer.Option(metavar="RUN", help="Show only this run.")] = "",
    episode: Annotated[str, typer.Option(metavar="EPISODE", help="Show only this episode.")] = "",
    group_by: Annotated[
        _By | None,
        typer.Option(help="One line for each of these; else each run, or each episode with --run."),
    ] = None,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Print the tokens, the engine time and the cost of a store's runs, the newest first.

    The command counts every answered step with its retries and further samples:
    input tokens (cached ones included), output tokens, and the seconds between
    each request and its answer. It does not count a step that failed (see the
    service's metrics), that a fork copied, or that a replay answered from the
    record.

    With `--group-by agent`, an agent has the use of the run that trained it. Other
    runs (evaluations, open runs) are shown under the run's agent name, as
    unregistered.

    Set the prices in the environment:

    AGENTWORLD_PRICE_PER_MILLION_INPUT_TOKENS    set both of these, or neither
    AGENTWORLD_PRICE_PER_MILLION_OUTPUT_TOKENS
    AGENTWORLD_PRICE_PER_MILLION_CACHED_TOKENS   else the price of input tokens
    AGENTWORLD_PRICE_PER_ENGINE_HOUR             an hour of engine time
    AGENTWORLD_PRICE_CURRENCY                    the heading of the cost column

    Without prices, the cost column shows -.
    """
    from agentworld.audit.questions.cost import Prices, costs
    from agentworld.operations.ledger import existing_ledger

    filters = {"tenant": tenant, "run": run, "episode": episode}
    selection = {name: value for name, value in filters.items() if value}
    share = group_by or ("episode" if run or episode else "run")
    ledger, prices = existing_ledger(Path(store)), Prices.from_environment()
    agents = _agents(Path(store)) if share == "agent" else {}
    report = costs(ledger, prices, share, agents, **selection)
    if as_json:
        show_json(report)
    else:
        _wide.print(_table(report, share))


def _agents(store: Path) -> dict[str, str]:
    """The registered agents by their runs."""
    from agentworld.audit.questions.cost import agents_by_run
    from agentworld.operations.registry import check_store, open_registry

    check_store(store)
    return agents_by_run(open_registry(store))


def _table(report: "Costs", by: _By) -> Table:
    """A row for each cost, and their total."""
    from agentworld.records.run import LOCAL_TENANT

    tenants = {entry.tenant for entry in report.costs} - {LOCAL_TENANT}
    names = [name for name in _NAMES[by] if name in (by, "run", "agent") or tenants]
    footers = ["total", *[""] * (len(names) - 1)]
    table = Table(
        *(
            Column(name, footer, overflow="fold", max_width=_WIDEST_NAME)
            for name, footer in zip(names, footers, strict=True)
        ),
        box=SIMPLE,
        show_edge=False,
        pad_edge=False,
        show_footer=True,
    )
    for name, total in _figures(report.total, report.currency).items():
        table.add_column(Text(name), Text(total), justify="right", no_wrap=True)
    for entry in report.costs:
        cells = (plain(_format_name(entry, name)) for name in names)
        table.add_row(*map(Text, (*cells, *_figures(entry, report.currency).values())))
    return table


def _format_name(cost: "Cost", name: str) -> str:
    value = str(getattr(cost, name))
    return f"{value}, unregistered" if name == "agent" and cost.registered is False else value


def _figures(cost: "Cost", currency: str) -> dict[str, str]:
    """The figures by column heading."""
    return {
        "episodes": f"{cost.num_episodes:,}",
        "steps": f"{cost.num_steps:,}",
        "input": f"{cost.input_tokens:,}",
        "cached": f"{cost.cached_tokens:,}",
        "output": f"{cost.output_tokens:,}",
        "engine s": f"{cost.engine_seconds:,.1f}",
        plain(currency) or "money": "-" if cost.money is None else f"{cost.money:,}",
    }
