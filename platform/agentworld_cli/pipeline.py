"""Kubeflow pipelines, including the main job: run them here, on a server, or on a schedule."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from agentworld_cli.demo import run_job
from agentworld_cli.history import history
from agentworld_cli.server_check import check
from agentworld_cli.show import (
    DEFAULT_RECIPE,
    DEFAULT_STORE,
    AnyStore,
    Json,
    RecipeName,
    plain,
    show_json,
)

if TYPE_CHECKING:
    from datetime import datetime

    from agentworld_pipelines.connection import Connection
    from agentworld_pipelines.records import PipelineRun, Schedule, Version

app = typer.Typer(help="Compile, run and schedule Kubeflow pipelines.", no_args_is_help=True)

_Server = Annotated[
    str,
    typer.Option(metavar="URL", help="The address of Kubeflow Pipelines; else AGENTWORLD_KFP_URL."),
]
_Placement = Annotated[
    Path | None, typer.Option(help="The YAML file that says where steps run on a cluster.")
]
_Image = Annotated[str, typer.Option(help="The image that steps run in on a cluster.")]
_Pipeline = Annotated[
    str, typer.Argument(metavar="PIPELINE", help="The pipeline: world_model, agent or nightly.")
]
_Stages = Annotated[
    str,
    typer.Option(
        metavar="STAGE,...",
        help="The training stages of the world model, from cpt,sft,rl, and traces before them for"
        " a recipe with traces; else the three stages.",
    ),
]
_Simulator = Annotated[
    str,
    typer.Option(
        metavar="DIGEST|ALIAS",
        help="The simulator, for the pipelines agent and nightly; else the recipe's alias.",
    ),
]

_MAIN_JOB = "world_model"


def _label(text: str) -> str:
    from pydantic import TypeAdapter, ValidationError

    from agentworld.errors import InputError
    from agentworld.records.base import Label

    try:
        return TypeAdapter(Label).validate_python(text)
    except ValidationError as error:
        raise InputError(
            f"{text!r} is not the name of a schedule; give at most 63 lower-case letters, digits"
            " and -"
        ) from error


_Name = Annotated[
    str, typer.Argument(metavar="NAME", callback=_label, help="Lower-case letters, digits and -.")
]


@app.command("compile")
def write(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The YAML file to write.")],
    name: _Pipeline = _MAIN_JOB,
    placement: _Placement = None,
    image: _Image = "",
    stages: _Stages = "",
) -> None:
    """Write a pipeline as YAML for Kubeflow Pipelines."""
    from agentworld_pipelines.compile import compile_pipeline
    from agentworld_pipelines.placement import load_placement

    cluster_placement = load_placement(placement) if placement else None
    compile_pipeline(
        out, name, cluster_placement, image or None, stages.split(",") if stages else ()
    )


@app.command()
def run(
    pipeline: _Pipeline = _MAIN_JOB,
    recipe: RecipeName = DEFAULT_RECIPE,
    store: AnyStore = DEFAULT_STORE,
    simulator: _Simulator = "",
    server: _Server = "",
    placement: _Placement = None,
    image: _Image = "",
    stages: _Stages = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the run on the server has ended.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a pipeline; finished steps are not repeated.

    With a server, the pipeline runs there. If a run of the same pipeline, recipe and store is
    active, the command prints that run and starts no second one. Without a server, the main job
    runs on this machine: world_model, then agent if the gate passed.
    """
    from agentworld.errors import InputError, PipelineError
    from agentworld_pipelines.settings import ServerSettings

    if not (server or ServerSettings().url):
        if pipeline != _MAIN_JOB or simulator or stages:
            raise InputError(
                f"only {_MAIN_JOB} runs without a server, with all stages; give --server URL, or"
                " run the pipeline's steps as commands"
            )
        _run_here(recipe, store, as_json=as_json)
        return
    from agentworld_pipelines.server import start

    arguments, connection = _arguments(pipeline, recipe, store, simulator), _connection(server)
    pipeline_run = start(
        connection, _upload(connection, pipeline, placement, image, stages), arguments
    )
    if wait:
        pipeline_run = _follow(connection, pipeline_run)
    if as_json:
        show_json(pipeline_run)
    else:
        print(f"{plain(pipeline_run.id)}\nlook at {plain(pipeline_run.url)}")
    if wait and pipeline_run.state != "SUCCEEDED":
        reason = pipeline_run.failure or "the server gives no reason"
        raise PipelineError(
            f"run {pipeline_run.id} ended as {pipeline_run.state}: {reason};"
            f" look at {pipeline_run.url}"
        )


@app.command()
def schedule(
    name: _Name,
    cron: Annotated[
        str, typer.Option(metavar="CRON", help="Minute, hour, day, month and weekday, in UTC.")
    ],
    pipeline: Annotated[
        str, typer.Option(metavar="PIPELINE", help="The pipeline: world_model, agent or nightly.")
    ] = _MAIN_JOB,
    recipe: RecipeName = DEFAULT_RECIPE,
    store: AnyStore = DEFAULT_STORE,
    simulator: _Simulator = "",
    server: _Server = "",
    placement: _Placement = None,
    image: _Image = "",
    stages: _Stages = "",
    as_json: Json = False,
) -> None:
    """Run a pipeline on a server on a schedule, one run at a time.

    An equal schedule of this name is unchanged; a different one is replaced.
    """
    from agentworld_pipelines.cron import Cron
    from agentworld_pipelines.records import Plan
    from agentworld_pipelines.schedule import schedule

    Cron.parse(cron)
    arguments, connection = _arguments(pipeline, recipe, store, simulator), _connection(server)
    version = _upload(connection, pipeline, placement, image, stages)
    plan = Plan(name=name, cron=cron, version=version, arguments=arguments)
    schedule_record = schedule(connection, plan)
    if as_json:
        show_json(schedule_record)
    else:
        print(_describe_schedule(schedule_record))


@app.command("list")
def list_(server: _Server = "", as_json: Json = False) -> None:
    """List the schedules of a server and its newest runs."""
    from agentworld_pipelines.schedule import schedules
    from agentworld_pipelines.server import newest_runs

    connection = _connection(server)
    _show_all(schedules(connection), newest_runs(connection), as_json=as_json)


@app.command()
def stop(
    name: Annotated[
        str,
        typer.Argument(metavar="ID|NAME", help="The name or id of a schedule, or the id of a run."),
    ],
    server: _Server = "",
    as_json: Json = False,
) -> None:
    """Delete a schedule, or stop a run. Runs that a schedule started continue."""
    from agentworld_pipelines.schedule import unschedule
    from agentworld_pipelines.server import stop_run

    connection = _connection(server)
    schedules = unschedule(connection, name)
    _show_all(schedules, [] if schedules else [stop_run(connection, name)], as_json=as_json)


app.command()(check)
app.command()(history)


def _run_here(recipe: str, store: str, *, as_json: bool) -> None:
    from agentworld.runner.folders import verdict_of
    from agentworld.runner.remote import local_path, local_store
    from agentworld.storage.working_copy import address_of
    from agentworld_cli.tables import show_refusal

    folders = run_job(local_path(recipe, store), local_store(store)).folders
    verdict = verdict_of(folders["gate"])
    if as_json:
        paths = {step: address_of(str(folder)) for step, folder in folders.items()}
        show_json({"folders": paths, "verdict": verdict.verdict, "reason": verdict.reason})
    else:
        show_refusal(verdict)


def _connection(server: str) -> "Connection":
    from agentworld_pipelines.connection import Connection
    from agentworld_pipelines.settings import ServerSettings

    settings = ServerSettings()
    return Connection(settings.model_copy(update={"url": server or settings.url}))


def _upload(
    connection: "Connection", pipeline: str, placement: Path | None, image: str, stages: str
) -> "Version":
    from agentworld_pipelines.server import upload

    with TemporaryDirectory() as folder:
        path = Path(folder) / "pipeline.yaml"
        write(path, pipeline, placement=placement, image=image, stages=stages)
        return upload(connection, path)


def _arguments(pipeline: str, recipe: str, store: str, simulator: str) -> dict[str, str]:
    from agentworld_pipelines.compile import arguments_for

    return arguments_for(pipeline, {"recipe": recipe, "store": store, "simulator": simulator})


def _follow(connection: "Connection", pipeline_run: "PipelineRun") -> "PipelineRun":
    from agentworld_pipelines.server import follow

    for latest_run in follow(connection, pipeline_run.id):
        print(_describe_run(latest_run), file=sys.stderr)
        pipeline_run = latest_run
    return pipeline_run


def _show_all(schedules: "list[Schedule]", runs: "list[PipelineRun]", *, as_json: bool) -> None:
    if as_json:
        show_json({"schedules": schedules, "runs": runs})
        return
    for pipeline_schedule in schedules:
        print(_describe_schedule(pipeline_schedule))
    for pipeline_run in runs:
        print(_describe_run(pipeline_run))


def _describe_run(pipeline_run: "PipelineRun") -> str:
    line = f"{pipeline_run.id}  {pipeline_run.name}  {pipeline_run.state}"
    line += f", started {_moment(pipeline_run.started)}"
    if pipeline_run.finished:
        line += f", finished {_moment(pipeline_run.finished)}"
    if pipeline_run.failure:
        line += f": {pipeline_run.failure}"
    return plain(f"{line}  {pipeline_run.url}")


def _describe_schedule(pipeline_schedule: "Schedule") -> str:
    line = f"{pipeline_schedule.id}  {pipeline_schedule.name}  {pipeline_schedule.cron}"
    line += f", next {_moment(pipeline_schedule.next_run)}" if pipeline_schedule.next_run else ""
    line += "" if pipeline_schedule.enabled else ", disabled"
    last = pipeline_schedule.last_run
    return plain(line + (f", last {last.state} {_moment(last.started)}" if last else ""))


def _moment(moment: "datetime") -> str:
    return moment.isoformat(sep=" ", timespec="seconds")
