"""Live episodes, and the data sets that are made of them."""

from pathlib import Path

import typer

from agentworld_cli.show import Json, show_record
from agentworld_cli.steps import add_steps

app = typer.Typer(help="Live episodes and data sets.", no_args_is_help=True)
add_steps(app, "data")


@app.command()
def show(folder: Path, as_json: Json = False) -> None:
    """Say what a data set holds."""
    from agentworld.storage.pools import read_dataset

    show_record(read_dataset(folder), as_json=as_json)
