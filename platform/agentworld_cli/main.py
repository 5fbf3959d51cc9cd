"""The table of contents: one file for each noun."""

import os
import sys
import warnings
from typing import Annotated

import typer

from agentworld_cli import (
    agent,
    alias,
    api_key,
    audit,
    backup,
    console,
    cost,
    data,
    demo,
    domain,
    episode,
    evaluate,
    pipeline,
    recipe,
    run,
    signing_key,
    simulator,
    train,
    world_model,
)
from agentworld_cli.errors import exit_on_error

# Nothing here reaches for a model hub, reports its use, or talks of its own tables.
_QUIET = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
}

app = typer.Typer(
    help="Train world models, serve them as pinned simulators, train agents in them, audit both.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        print(f"agentworld {version('agentworld')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


app.command()(demo.demo)
app.add_typer(recipe.app, name="recipe")
app.add_typer(domain.app, name="domain")
app.add_typer(data.app, name="data")
app.add_typer(train.app, name="train")
app.add_typer(evaluate.app, name="evaluate")
app.add_typer(world_model.app, name="world-model")
app.add_typer(simulator.app, name="simulator")
app.add_typer(run.app, name="run")
app.add_typer(episode.app, name="episode")
app.add_typer(agent.app, name="agent")
app.add_typer(alias.app, name="alias")
app.add_typer(audit.app, name="audit")
app.add_typer(backup.app, name="backup")
app.command()(console.console)
app.command()(cost.cost)
app.add_typer(api_key.app, name="api-key")
app.add_typer(signing_key.app, name="signing-key")
app.add_typer(pipeline.app, name="pipeline")


def main() -> None:
    """The program `agentworld`."""
    os.environ.update(_QUIET | os.environ)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # a warning of a library is no sentence for a user
    with exit_on_error():
        # Here an error has one form, also that of a command line.
        sys.exit(app(prog_name="agentworld", standalone_mode=False))


if __name__ == "__main__":
    main()
