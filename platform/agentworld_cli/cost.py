"""What runs used, and what that costs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from agentworld_cli.plain import plain
from agentworld_cli.show import DEFAULT_STORE, Json, Store, show_json

if TYPE_CHECKING:
    from agentworld.audit.questions.cost import Cost, Costs

_By = Literal["tenant", "agent", "run", "episode"]

_NAMES: dict[_By, tuple[str, ...]] = {
    "tenant": ("tenant",),
    "agent": ("agent", "tenant"),
    "run": ("run", "tenant", "agent"),
    "episode": ("episode", "run"),
}

# A number that is cut off is another number; a narrower terminal wraps by itself.
_wide = Console(width=1_000, highlight=False)
_WIDEST_NAME = 40


def cost(
    tenant: Annotated[str, typer.Option(metavar="TENANT", help="Only this tenant's use.")] = "",
    run: Annotated[str, typer.Option(metavar="RUN", help="Only this run.")] = "",
    episode: Annotated[str, typer.Option(metavar="EPISODE", help="Only this episode.")] = "",
    group_by: Annotated[
        _By | None,
        typer.Option(help="What gets a line; else a run, or an episode with --run."),
    ] = None,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Print what the runs of a store used and cost, the newest first.

    Counted are answered steps, each with the retries and the further samples
    that led to it: tokens of prompts (the cached ones are a part of them) and of
    answers, and the seconds from each request to its answer. A step that failed
    in the end is in the service's metrics alone, as one that failed. A step that
    a fork copied, or that was answered from the record, used nothing.

    An agent used what the run did that made it. What made no agent that is
    registered (an evaluation, a run that goes on) goes by the name that its run
    has for one, and is told as unregistered.

    Prices are what the environment names:

    AGENTWORLD_PRICE_PER_MILLION_INPUT_TOKENS    with the next, or neither
    AGENTWORLD_PRICE_PER_MILLION_OUTPUT_TOKENS
    AGENTWORLD_PRICE_PER_MILLION_CACHED_TOKENS   unset: as other input
    AGENTWORLD_PRICE_PER_ENGINE_HOUR             of one request at a time
    AGENTWORLD_PRICE_CURRENCY                    a label

    Where nothing has a price, a - stands for the money.
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
    """Those that are registered, by their runs."""
    from agentworld.audit.questions.cost import agents_by_run
    from agentworld.operations.registry import check_store, open_registry

    check_store(store)
    return agents_by_run(open_registry(store))


def _table(report: "Costs", by: _By) -> Table:
    """A line for each, and their total."""
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
    """By their headings."""
    return {
        "episodes": f"{cost.num_episodes:,}",
        "steps": f"{cost.num_steps:,}",
        "input": f"{cost.input_tokens:,}",
        "cached": f"{cost.cached_tokens:,}",
        "output": f"{cost.output_tokens:,}",
        "engine s": f"{cost.engine_seconds:,.1f}",
        plain(currency) or "money": "-" if cost.money is None else f"{cost.money:,}",
    }
