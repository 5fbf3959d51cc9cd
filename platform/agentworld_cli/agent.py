"""Agents: what they can do in the live shell."""

import typer

from agentworld_cli.show import JSON, RECIPE, STORE, show_folder

app = typer.Typer(help="Agents.", no_args_is_help=True)


@app.callback()
def agents() -> None:
    """Agents."""


@app.command()
def validate(
    agent: str = typer.Option(help="The folder of a finished `train agent`."),
    simulator: str = typer.Option(help="The folder of a finished `simulator pin`."),
    recipe: str = RECIPE,
    store: str = STORE,
    as_json: bool = JSON,
) -> None:
    """Try an agent before and after its training, simulated and live."""
    from agentworld.steps.validate import validate

    show_folder(validate(recipe, store, simulator, agent), as_json=as_json)
