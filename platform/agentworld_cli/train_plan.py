"""`train plan`: the resources of a training, before it is scheduled."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.box import SIMPLE
from rich.table import Table

from agentworld_cli.show import DEFAULT_RECIPE, Json, RecipeName, console, plain, show_json

if TYPE_CHECKING:
    from agentworld.records.training_plan import StagePlan

_GIB = 1 << 30
_Stage = Literal["cpt", "sft"]


def plan(
    gpus: Annotated[
        str, typer.Option(metavar="GPUS", help="8xH100, or 4x8xH100 for four such nodes.")
    ],
    recipe: RecipeName = DEFAULT_RECIPE,
    stage: Annotated[
        _Stage | None, typer.Option(help="Plan only this stage; else cpt and sft.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="A folder with the config.json of the recipe's base; no weights are read.",
        ),
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens of the stage's pool, for time and cost.")
    ] = None,
    node_memory: Annotated[
        float | None, typer.Option(metavar="GIB", min=1, help="Memory of a node, beside its GPUs.")
    ] = None,
    tokens_per_second: Annotated[
        float | None, typer.Option(min=1e-9, help="Your own figure of one GPU, for time and cost.")
    ] = None,
    price: Annotated[
        float | None, typer.Option(min=0, help="The price of a GPU for an hour.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the memory, the time and the cost of a training, or refuse one that does not fit.

    Nothing is trained, fetched or scheduled: the command reads a config.json, and counts what a
    forward pass would keep. It prints GiB by part: of each GPU when the model is loaded, at the
    most expensive moment of training, and when it is saved; and of a node's own memory.

    The time comes from the measured or cited training that is most similar, which is named beside
    it.
    """
    from agentworld.operations.training_plan import plan_training
    from agentworld.train.plan.planning import Terms, parse_gpus

    terms = Terms(parse_gpus(gpus), node_memory, tokens, tokens_per_second, price)
    plans = plan_training(recipe, [stage] if stage else ["cpt", "sft"], model, terms)
    if as_json:
        show_json(plans)
        return
    for stage_plan in plans:
        _show(stage_plan)


def _show(plan: "StagePlan") -> None:
    print(
        plain(
            f"{plan.stage} of {plan.model} on {plan.gpus}: {plan.num_weights:,} weights,"
            f" {plan.num_trained:,} trained"
        )
    )
    table = Table("GiB of each GPU", box=SIMPLE, pad_edge=False)
    for moment in plan.memory.gpu:
        table.add_column(moment, justify="right")
    memories = list(plan.memory.gpu.values())
    for part in type(memories[0]).model_fields:
        table.add_row(part, *(_gib(getattr(memory, part)) for memory in memories))
    table.add_section()
    table.add_row(f"all, of {_gib(plan.usable)}", *(_gib(memory.total) for memory in memories))
    table.add_row("a node's memory", *(_gib(num_bytes) for num_bytes in plan.memory.node.values()))
    console.print(table)
    print(plain(_time(plan)))


def _time(plan: "StagePlan") -> str:
    if plan.speed is None:
        return (
            "time: unknown, because no such model was measured or cited; give --tokens-per-second"
            " of one GPU"
        )
    speed = f"{plan.speed.tokens_per_second:,.0f} tokens a second ({plan.speed.source})"
    if plan.seconds is None or plan.gpu_hours is None:
        return f"time: {speed}; give --tokens for the hours"
    cost = "unknown without --price" if plan.cost is None else f"{plan.cost:,.2f}"
    return (
        f"time: {plan.seconds / 3_600:,.1f} hours, {plan.gpu_hours:,.1f} hours of GPUs, at {speed};"
        f" cost: {cost}"
    )


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / _GIB:.1f}" if num_bytes else "-"
