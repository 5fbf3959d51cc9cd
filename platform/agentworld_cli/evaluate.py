"""Held-out live episodes for the stages' checkpoints."""

import typer

from agentworld_cli.show import JSON, RECIPE, STORE, show_folder

_STAGE = typer.Option(help="The folder of the finished stage.")


def evaluate(
    data: str = typer.Option(help="The folder of a finished `data prepare`."),
    cpt: str = _STAGE,
    sft: str = _STAGE,
    rl: str = _STAGE,
    recipe: str = RECIPE,
    store: str = STORE,
    as_json: bool = JSON,
) -> None:
    """Score the stages and two baselines on held-out live episodes."""
    from agentworld.steps.evaluate import evaluate

    show_folder(evaluate(recipe, store, data, cpt, sft, rl), as_json=as_json)
