"""The yields of traces as a table, with the columns of Qwen-AgentWorld's table 4 first."""

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

from agentworld.data.traces import YIELDS
from agentworld.records.traces import TraceReport, TraceYield
from agentworld.runner.remote import local_path

_UNKNOWN = "unknown"


def show_yields(folder: str, store: str) -> None:
    """Shows the yields of a finished `data traces` on stderr, because stdout only has its
    folder.
    """
    report = TraceReport.read(Path(local_path(f"{folder}/{YIELDS}", store)))
    names = "prompts retained traces turns rollouts scored rejected holes tokens dollars".split()
    columns = [Column(name, justify="right") for name in names]
    table = Table("domain", *columns, box=SIMPLE_HEAD, show_footer=False)
    rows = [*report.domains.items(), *([("all", report.total)] if len(report.domains) > 1 else [])]
    for name, counts in rows:
        table.add_row(name, *_cells(counts))
    Console(stderr=True, highlight=False).print(table)


def _cells(counts: TraceYield) -> list[str]:
    dollars = [counts.teacher.dollars, counts.judge.dollars]
    tokens = [
        counts.teacher.num_prompt_tokens,
        counts.teacher.num_tokens,
        counts.judge.num_prompt_tokens,
        counts.judge.num_tokens,
    ]
    known_dollars = [price for price in dollars if price is not None]
    known_tokens = [number for number in tokens if number is not None]
    return [
        f"{counts.prompts:,}",
        "-" if counts.retained is None else f"{counts.retained:.1%}",
        f"{counts.selected:,}",
        f"{counts.turns / counts.selected:.1f}" if counts.selected else "-",
        f"{counts.rollouts:,}",
        f"{counts.scored:,}",
        f"{counts.rejected:,}",
        f"{counts.holes:,}",
        f"{sum(known_tokens):,}" if len(known_tokens) == len(tokens) else _UNKNOWN,
        f"{sum(known_dollars):.2f}" if len(known_dollars) == len(dollars) else _UNKNOWN,
    ]
