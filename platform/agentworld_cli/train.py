"""Training: the stages of a world model, and an agent."""

from typing import Annotated

import typer

from agentworld_cli.show import DEFAULT_RECIPE, DEFAULT_STORE, AnyStore, Json, RecipeName, show_step
from agentworld_cli.steps import add_steps, folder_help
from agentworld_cli.train_plan import plan

app = typer.Typer(help="Train a stage of a world model, or an agent.", no_args_is_help=True)
add_steps(app, "train", excluded=["agent"])
app.command()(plan)


@app.command()
def agent(
    imitated: Annotated[str, typer.Option(metavar="FOLDER", help=folder_help("imitate"))],
    recipe: RecipeName = DEFAULT_RECIPE,
    store: AnyStore = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Train an agent by RL in the simulator alone, in a run that this command opens and closes."""
    from agentworld.steps.run import run_by_name

    def run_steps() -> str:
        run_folder = run_by_name("open_run", recipe, store, imitated)
        folder = run_by_name("agent", recipe, store, imitated, run_folder)
        run_by_name("close_run", recipe, store, folder)
        return folder

    show_step(run_steps, as_json=as_json)
