"""The main job as a Kubeflow pipeline."""

from pathlib import Path
from typing import Annotated

import typer

from agentworld_cli.demo import run_job
from agentworld_cli.show import DEFAULT_RECIPE, DEFAULT_STORE, RecipeName, Store

app = typer.Typer(help="The main job as a Kubeflow pipeline.", no_args_is_help=True)


@app.command("compile")
def write(
    output: Annotated[Path, typer.Option("--output", "-o", help="The YAML file to write.")],
    image: Annotated[str, typer.Option(help="The image that the cluster pulls.")] = "",
) -> None:
    """Write the pipeline for a cluster."""
    from agentworld_pipelines.compile import compile_pipeline
    from agentworld_pipelines.components import IMAGE

    compile_pipeline(output, image or IMAGE)


@app.command()
def run(recipe: RecipeName = DEFAULT_RECIPE, store: Store = DEFAULT_STORE) -> None:
    """Run every step here; what is finished is used again."""
    from agentworld.steps.folders import verdict_of
    from agentworld_cli.tables import show_refusal

    job = run_job(recipe, Path(store))
    show_refusal(verdict_of(job.folders["gate"]))
