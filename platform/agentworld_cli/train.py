"""Training: the stages of a world model, and an agent."""

from typing import Annotated

import typer

from agentworld_cli.show import DEFAULT_RECIPE, DEFAULT_STORE, AnyStore, Json, RecipeName, show_step

app = typer.Typer(help="Training stages.", no_args_is_help=True)

_Data = Annotated[str, typer.Option(help="The folder of a finished `data prepare`.")]
_Parent = Annotated[str, typer.Option(help="The folder of the stage to start from.")]


@app.command()
def cpt(
    data: _Data,
    recipe: RecipeName = DEFAULT_RECIPE,
    store: AnyStore = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Continual pre-training."""
    from agentworld.steps.cpt import cpt

    show_step(cpt, recipe, store, data, as_json=as_json)


@app.command()
def sft(
    data: _Data,
    parent: _Parent,
    recipe: RecipeName = DEFAULT_RECIPE,
    store: AnyStore = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Supervised fine-tuning."""
    from agentworld.steps.sft import sft

    show_step(sft, recipe, store, data, parent, as_json=as_json)


@app.command()
def rl(
    data: _Data,
    parent: _Parent,
    recipe: RecipeName = DEFAULT_RECIPE,
    store: AnyStore = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """RL of the world model."""
    from agentworld.steps.rl import rl

    show_step(rl, recipe, store, data, parent, as_json=as_json)


@app.command()
def imitate(
    collected: Annotated[str, typer.Option(help="The folder of a finished `data collect`.")],
    simulator: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="An alias, a digest or a folder; the recipe's alias if not given."
        ),
    ] = "",
    recipe: RecipeName = DEFAULT_RECIPE,
    store: AnyStore = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Train an agent to imitate explorers, from the weights of the simulator it is for."""
    from agentworld.steps.imitate import imitate

    show_step(imitate, recipe, store, collected, simulator, as_json=as_json)


@app.command()
def agent(
    imitated: Annotated[str, typer.Option(help="The folder of a finished `train imitate`.")],
    recipe: RecipeName = DEFAULT_RECIPE,
    store: AnyStore = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """RL in the simulator alone, in a run that is opened before and closed after."""
    from agentworld.steps.agent import agent
    from agentworld.steps.close_run import close_run
    from agentworld.steps.open_run import open_run

    def trained() -> str:
        folder = agent(recipe, store, imitated, open_run(recipe, store, imitated))
        close_run(store, folder)
        return folder

    show_step(trained, as_json=as_json)
