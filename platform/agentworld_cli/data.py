"""Live episodes, and the data sets that are made of them."""

from pathlib import Path

import typer

from agentworld_cli.show import JSON, RECIPE, STORE, show_folder, show_record

app = typer.Typer(help="Live episodes and data sets.", no_args_is_help=True)


@app.command()
def collect(recipe: str = RECIPE, store: str = STORE, as_json: bool = JSON) -> None:
    """Let exploring policies act in a live shell."""
    from agentworld.steps.collect import collect

    show_folder(collect(recipe, store), as_json=as_json)


@app.command()
def prepare(
    collected: str = typer.Option(help="The folder of a finished `data collect`."),
    recipe: str = RECIPE,
    store: str = STORE,
    as_json: bool = JSON,
) -> None:
    """Make trajectories into samples."""
    from agentworld.steps.prepare import prepare

    show_folder(prepare(recipe, store, collected), as_json=as_json)


@app.command()
def show(folder: Path, as_json: bool = JSON) -> None:
    """Say what a data set holds."""
    from agentworld.storage.pools import read_dataset

    show_record(read_dataset(folder), as_json=as_json)
