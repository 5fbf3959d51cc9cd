"""Training: the stages of a world model, and an agent."""

from typing import Annotated

import typer

from agentworld_cli.show import DEFAULT_RECIPE, DEFAULT_STORE, Json, RecipeName, Store, show_step

app = typer.Typer(help="Training stages.", no_args_is_help=True)

_Data = Annotated[str, typer.Option(help="The folder of a finished `data prepare`.")]
_Parent = Annotated[str, typer.Option(help="The folder of the stage to start from.")]


@app.command()
def cpt(
    data: _Data,
    recipe: RecipeName = DEFAULT_RECIPE,
    store: Store = DEFAULT_STORE,
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
    store: Store = DEFAULT_STORE,
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
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """RL of the world model."""
    from agentworld.steps.rl import rl

    show_step(rl, recipe, store, data, parent, as_json=as_json)


@app.command()
def agent(
    collected: Annotated[str, typer.Option(help="The folder of a finished `data collect`.")],
    simulator: Annotated[str, typer.Option(help="The folder of a finished `simulator pin`.")],
    recipe: RecipeName = DEFAULT_RECIPE,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Imitation, then RL in the simulator alone."""
    from agentworld.steps.agent import agent

    show_step(agent, recipe, store, collected, simulator, as_json=as_json)
