"""Agents: what they can do in the live shell, and their versions."""

from typing import Annotated

import typer

from agentworld_cli.show import DEFAULT_RECIPE, DEFAULT_STORE, AnyStore, Json, RecipeName, show_step

app = typer.Typer(help="Agents.", no_args_is_help=True)

_Agent = Annotated[str, typer.Option(help="The folder of a finished `train agent`.")]


@app.command()
def validate(
    imitated: Annotated[str, typer.Option(help="The folder of a finished `train imitate`.")],
    agent: _Agent,
    recipe: RecipeName = DEFAULT_RECIPE,
    store: AnyStore = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Try an agent before and after its training, simulated and live."""
    from agentworld.steps.validate import validate

    show_step(validate, recipe, store, imitated, agent, as_json=as_json)


@app.command()
def register(
    agent: _Agent,
    validation: Annotated[str, typer.Option(help="The folder of a finished `agent validate`.")],
    recipe: RecipeName = DEFAULT_RECIPE,
    store: AnyStore = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Make a version of an agent that was validated."""
    from agentworld.steps.close_run import close_run
    from agentworld.steps.register_agent import register_agent

    def registered() -> str:
        return register_agent(recipe, store, agent, close_run(store, agent), validation)

    show_step(registered, as_json=as_json)
