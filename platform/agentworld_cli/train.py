"""Training: the stages of a world model, and an agent."""

import typer

from agentworld_cli.show import JSON, RECIPE, STORE, show_folder

app = typer.Typer(help="Training stages.", no_args_is_help=True)

_DATA = typer.Option(help="The folder of a finished `data prepare`.")
_PARENT = typer.Option(help="The folder of the stage to start from.")


@app.command()
def cpt(data: str = _DATA, recipe: str = RECIPE, store: str = STORE, as_json: bool = JSON) -> None:
    """Continual pre-training."""
    from agentworld.steps.cpt import cpt

    show_folder(cpt(recipe, store, data), as_json=as_json)


@app.command()
def sft(
    data: str = _DATA,
    parent: str = _PARENT,
    recipe: str = RECIPE,
    store: str = STORE,
    as_json: bool = JSON,
) -> None:
    """Supervised fine-tuning."""
    from agentworld.steps.sft import sft

    show_folder(sft(recipe, store, data, parent), as_json=as_json)


@app.command()
def rl(
    data: str = _DATA,
    parent: str = _PARENT,
    recipe: str = RECIPE,
    store: str = STORE,
    as_json: bool = JSON,
) -> None:
    """RL of the world model."""
    from agentworld.steps.rl import rl

    show_folder(rl(recipe, store, data, parent), as_json=as_json)


@app.command()
def agent(
    collected: str = typer.Option(help="The folder of a finished `data collect`."),
    simulator: str = typer.Option(help="The folder of a finished `simulator pin`."),
    recipe: str = RECIPE,
    store: str = STORE,
    as_json: bool = JSON,
) -> None:
    """Imitation, then RL in the simulator alone."""
    from agentworld.steps.agent import agent

    show_folder(agent(recipe, store, collected, simulator), as_json=as_json)
