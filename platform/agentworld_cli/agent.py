"""Agents: what they can do in the live shell."""

from typing import Annotated

import typer

from agentworld_cli.show import DEFAULT_RECIPE, DEFAULT_STORE, Json, RecipeName, Store, show_step

app = typer.Typer(help="Agents.", no_args_is_help=True)


@app.callback()
def agents() -> None:
    """Agents."""


@app.command()
def validate(
    agent: Annotated[str, typer.Option(help="The folder of a finished `train agent`.")],
    simulator: Annotated[str, typer.Option(help="The folder of a finished `simulator pin`.")],
    recipe: RecipeName = DEFAULT_RECIPE,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Try an agent before and after its training, simulated and live."""
    from agentworld.steps.validate import validate

    show_step(validate, recipe, store, simulator, agent, as_json=as_json)
