"""Live episodes, and the data sets that are made of them."""

from pathlib import Path
from typing import Annotated

import typer

from agentworld_cli.show import (
    DEFAULT_RECIPE,
    DEFAULT_STORE,
    AnyStore,
    Json,
    RecipeName,
    show_record,
    show_step,
)

app = typer.Typer(help="Live episodes and data sets.", no_args_is_help=True)


@app.command()
def collect(
    recipe: RecipeName = DEFAULT_RECIPE, store: AnyStore = DEFAULT_STORE, as_json: Json = False
) -> None:
    """Let exploring policies act in live environments."""
    from agentworld.steps.collect import collect

    show_step(collect, recipe, store, as_json=as_json)


@app.command()
def prepare(
    collected: Annotated[str, typer.Option(help="The folder of a finished `data collect`.")],
    recipe: RecipeName = DEFAULT_RECIPE,
    store: AnyStore = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Make trajectories into samples."""
    from agentworld.steps.prepare import prepare

    show_step(prepare, recipe, store, collected, as_json=as_json)


@app.command()
def show(folder: Path, as_json: Json = False) -> None:
    """Say what a data set holds."""
    from agentworld.storage.pools import read_dataset

    show_record(read_dataset(folder), as_json=as_json)
