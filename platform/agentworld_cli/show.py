"""Printing a result: as JSON for machines, as a table or a tree for people."""

from typing import Annotated

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RecipeName = Annotated[str, typer.Option(help="A recipe's file, or the name of a shipped one.")]
Store = Annotated[str, typer.Option(help="The folder of steps, registry and ledger.")]

DEFAULT_RECIPE = "demo"
DEFAULT_STORE = "demo-output/demo"

console = Console()


def show_record(record: BaseModel, *, as_json: bool) -> None:
    """A record's fields, one in a line."""
    if as_json:
        print(record.model_dump_json(indent=2))
        return
    table = Table.grid(padding=(0, 2))
    for name, value in record.model_dump(mode="json").items():
        table.add_row(name, _short(value))
    console.print(table)


def show_folder(folder: str, *, as_json: bool) -> None:
    """The folder of a finished step, as the next command takes it."""
    if as_json:
        console.print_json(data={"folder": folder})
    else:
        print(folder)


def brief(digest: str | None) -> str:
    """A digest that a person can compare."""
    return digest[:19] if digest else "-"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else text[:197] + "..."
