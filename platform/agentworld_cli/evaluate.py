"""Evaluations: of a world model's stages, and of a pinned simulator."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentworld_cli.show import DEFAULT_RECIPE, DEFAULT_STORE, AnyStore, Json, RecipeName, show_step
from agentworld_cli.steps import add_steps

if TYPE_CHECKING:
    from agentworld.records.report import Estimate

app = typer.Typer(help="Measure world models on held-out live episodes.", no_args_is_help=True)
add_steps(app, "evaluate", excluded=["served"])


@app.command()
def served(
    simulator: Annotated[
        str,
        typer.Argument(
            metavar="SIMULATOR",
            help="An alias, a digest or its start, or a folder; else the recipe's alias.",
        ),
    ] = "",
    job: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The name of the measurement; the same name continues it; else today's date.",
        ),
    ] = "",
    recipe: RecipeName = DEFAULT_RECIPE,
    store: AnyStore = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Compare a pinned simulator with new live episodes, and attach the report to it.

    The command asks the service at AGENTWORLD_SERVICE_URL; if that is not set, it serves the
    simulator on this machine. It prints exact match and its change since registration.
    """
    from agentworld.records.report import ServedReport
    from agentworld.runner.folders import REPORT
    from agentworld.runner.remote import local_path
    from agentworld.steps.run import run_by_name

    name = job or datetime.now(UTC).date().isoformat()
    folder = show_step(run_by_name, "measure", recipe, store, simulator, name, as_json=as_json)
    report = ServedReport.read(Path(local_path(folder, store)) / REPORT)
    line = f"exact match {_format_estimate(report.free_running.exact_match)}"
    if report.change:
        line += f", {_format_estimate(report.change)} since it was registered"
    sys.stderr.write(f"{line}{': drifted' if report.drifted else ''}\n")


def _format_estimate(estimate: "Estimate") -> str:
    return f"{estimate.mean:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"
