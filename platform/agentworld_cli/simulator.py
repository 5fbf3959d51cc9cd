"""Pinned simulators: making, serving and showing them."""

import time
from pathlib import Path
from typing import Annotated

import typer

from agentworld_cli.show import (
    DEFAULT_RECIPE,
    DEFAULT_STORE,
    Json,
    RecipeName,
    Store,
    console,
    show_record,
    show_step,
)

app = typer.Typer(help="Pinned simulators.", no_args_is_help=True)

_Which = Annotated[
    str, typer.Argument(metavar="DIGEST", help="The digest of a pinned simulator, or its start.")
]


@app.command()
def pin(
    version: Annotated[
        str, typer.Argument(metavar="NAME@VERSION", help="A registered world model.")
    ],
    recipe: RecipeName = DEFAULT_RECIPE,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Freeze a world model with all that shapes its observations."""
    from agentworld.lineage.base import VersionRef
    from agentworld.steps.addresses import check_store
    from agentworld.steps.simulate import pin_version

    ref = VersionRef.parse(version)
    check_store(Path(store))
    show_step(pin_version, recipe, store, ref, as_json=as_json)


@app.command()
def serve(
    simulator: _Which, recipe: RecipeName = DEFAULT_RECIPE, store: Store = DEFAULT_STORE
) -> None:
    """Answer agents until interrupted."""
    from agentworld.audit.sources import simulator_folder
    from agentworld.recipes import load_recipe, recipe_path
    from agentworld.steps.serving import served_at

    engine = load_recipe(recipe_path(recipe)).engine
    folder = simulator_folder(simulator, Path(store))
    with served_at(folder, engine, Path(store), folder / "logs") as url:
        console.print(f"{simulator} answers at {url}", soft_wrap=True)
        while True:
            time.sleep(3600)


@app.command()
def show(simulator: _Which, store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """Print a simulator's manifest."""
    from agentworld.audit.sources import simulator_folder
    from agentworld.records.simulator import SimulatorManifest

    folder = simulator_folder(simulator, Path(store))
    show_record(SimulatorManifest.read(folder / "manifest.json"), as_json=as_json)
