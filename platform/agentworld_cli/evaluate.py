"""Held-out live episodes for the stages' checkpoints."""

from typing import Annotated

import typer

from agentworld_cli.show import DEFAULT_RECIPE, DEFAULT_STORE, Json, RecipeName, Store, show_step

_Stage = Annotated[str, typer.Option(help="The folder of the finished stage.")]


def evaluate(
    data: Annotated[str, typer.Option(help="The folder of a finished `data prepare`.")],
    cpt: _Stage,
    sft: _Stage,
    rl: _Stage,
    recipe: RecipeName = DEFAULT_RECIPE,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Score the stages and two baselines on held-out live episodes."""
    from agentworld.steps.evaluate import evaluate

    show_step(evaluate, recipe, store, data, cpt, sft, rl, as_json=as_json)
