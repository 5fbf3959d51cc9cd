"""The whole job on this machine: one command, a progress bar for each step, a table, a report."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from agentworld_cli.show import DEFAULT_RECIPE, Json, RecipeName, console, show_json

if TYPE_CHECKING:
    from agentworld_cli.follow import FinishedJob

_INTERRUPTED = 130


class Job(NamedTuple):
    """A finished job: its steps' folders, and the peak memory of all its processes."""

    recipe: str
    """Its name."""
    store: Path
    folders: dict[str, Path]
    peak_memory_gib: float


def demo(
    recipe: RecipeName = DEFAULT_RECIPE,
    store: Annotated[
        Path | None,
        typer.Option(help="The folder for results; else demo-output/ and the recipe's name."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the whole loop, from a live environment to an audited agent."""
    from agentworld.reports.page import write_page
    from agentworld.reports.summary import summarise
    from agentworld.runner.failure import translate
    from agentworld.steps.table import AFTER_GATE
    from agentworld_cli.tables import show_summary

    job = run_job(recipe, store)
    summary = summarise(job.recipe, job.folders, job.peak_memory_gib)
    try:
        summary.write(job.store / "summary.json")
        page = write_page(job.store / "report.html", job.folders, summary, AFTER_GATE)
    except OSError as error:
        raise translate(error, job.store) from error
    if as_json:
        show_json(summary)
    else:
        show_summary(job.folders, summary)
        console.print(f"figures: {job.store / 'summary.json'}\nreport: {page}", soft_wrap=True)


def run_job(name: str, store: Path | None) -> Job:
    """Runs every step; finished steps are reused."""
    from agentworld.domains.live import check_available
    from agentworld.recipes import load_recipe, recipe_path
    from agentworld.runner.failure import translate
    from agentworld.runner.lock import hold
    from agentworld.runner.progress import forget_progress
    from agentworld.runner.step import DRIVER_LOCK

    path = recipe_path(name).resolve()
    recipe = load_recipe(path)
    check_available({*recipe.collect.weights, *filter(None, [recipe.agent.domain])})
    place = (store or Path("demo-output") / recipe.name).resolve()
    busy = f"another run is using {place}; wait for it, end it, or name another --store"
    try:
        with hold(place / DRIVER_LOCK, busy):
            forget_progress(place)
            return Job(recipe.name, place, *_run(str(path), place))
    except OSError as error:
        raise translate(error, place) from error


def _run(recipe: str, store: Path) -> "FinishedJob":
    from agentworld_cli.follow import follow
    from agentworld_pipelines.local import start

    job = start(recipe, store)
    try:
        return follow(job, store)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the next run continues after the finished steps\n")
        raise typer.Exit(_INTERRUPTED) from None
    finally:
        # In every case, no process works on after the lock is released.
        job.terminate()
        job.wait()
