"""Uploads, runs, lists and stops pipelines on a Kubeflow Pipelines server.

Every operation may be repeated. Versions are named by the digest of their bytes and uploaded once;
an active run of the same bytes with the same arguments is reused.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from agentworld.errors import Conflict, InputError, PipelineError
from agentworld.records.base import digest_bytes, digest_json
from agentworld_pipelines.connection import Connection, in_states, name_filter
from agentworld_pipelines.records import UNFINISHED, PipelineRun, Version

EXPERIMENT = "agentworld"
"""The experiment of all our runs on a server."""

_NUM_NEWEST_RUNS = 100
_SECONDS_BETWEEN_LOOKS = (0.1, 5.0)
_SECONDS_OF_PATIENCE = 300.0


def upload(connection: Connection, compiled: Path) -> Version:
    """Uploads a compiled pipeline, unless the server has it."""
    data = compiled.read_bytes()
    name, digest = _pipeline_name(data), digest_bytes(data)
    pipeline_id = _ensure_id(
        lambda: _find_pipeline(connection, name), lambda: _create_pipeline(connection, name)
    )
    version = digest.replace(":", "-")
    version_id = _ensure_id(
        lambda: _find_version(connection, pipeline_id, version),
        lambda: _upload_version(connection, pipeline_id, version, compiled),
    )
    return Version(pipeline=name, pipeline_id=pipeline_id, id=version_id, compiled=digest)


def start(connection: Connection, version: Version, arguments: Mapping[str, str]) -> PipelineRun:
    """A run of a version: an active one with these arguments, or a new one."""
    key = digest_json({"version": version.id, "arguments": dict(arguments)})
    name = f"{version.pipeline}-{key.removeprefix('sha256:')[:16]}"
    experiment = ensure_experiment(connection)
    service, types = connection.client.runs, connection.client.api_models
    same_runs = connection.ask_for_all(
        service.run_service_list_runs, "runs", experiment_id=experiment, filter=name_filter(name)
    )
    for run in (_run(connection, entry) for entry in same_runs):
        if not run.has_ended and run.state != "CANCELING":
            return run
    body = types.V2beta1Run(
        experiment_id=experiment,
        display_name=name,
        **source(connection, version, arguments),
    )
    return _run(connection, connection.ask(service.run_service_create_run, run=body))


def source(
    connection: Connection, version: Version, arguments: Mapping[str, str]
) -> dict[str, Any]:
    """The pipeline version and arguments in the form that runs and schedules share."""
    types = connection.client.api_models
    return {
        "pipeline_version_reference": types.V2beta1PipelineVersionReference(
            pipeline_id=version.pipeline_id, pipeline_version_id=version.id
        ),
        "runtime_config": types.V2beta1RuntimeConfig(parameters=dict(arguments)),
    }


def run_of(connection: Connection, run_id: str) -> PipelineRun:
    """A run; raises NotFound."""
    return _run(
        connection, connection.ask(connection.client.runs.run_service_get_run, run_id=run_id)
    )


def newest_runs(connection: Connection) -> list[PipelineRun]:
    """The runs of our experiment, the newest first."""
    experiment = find_experiment(connection)
    if experiment is None:
        return []
    answer = connection.ask(
        connection.client.runs.run_service_list_runs,
        experiment_id=experiment,
        sort_by="created_at desc",
        page_size=_NUM_NEWEST_RUNS,
    )
    return [_run(connection, run) for run in answer.runs or ()]


def unfinished_runs(connection: Connection, experiment: str) -> list[PipelineRun]:
    """All active runs, however old they are."""
    runs = connection.ask_for_all(
        connection.client.runs.run_service_list_runs,
        "runs",
        experiment_id=experiment,
        filter=in_states(UNFINISHED),
    )
    return [_run(connection, run) for run in runs]


def follow(connection: Connection, run_id: str) -> Iterator[PipelineRun]:
    """Yields a run whenever its state has changed, until it has ended.

    Waits some minutes for a server that does not answer.
    """
    pause, longest_pause = _SECONDS_BETWEEN_LOOKS
    last_answer, state = time.monotonic(), ""
    while True:
        try:
            run = run_of(connection, run_id)
        except PipelineError as error:
            if not error.retryable or time.monotonic() - last_answer > _SECONDS_OF_PATIENCE:
                raise
        else:
            last_answer = time.monotonic()
            if run.state != state:
                state = run.state
                yield run
            if run.has_ended:
                return
        time.sleep(pause)
        pause = min(2 * pause, longest_pause)


def stop_run(connection: Connection, run_id: str) -> PipelineRun:
    """Stops a run, which takes a while; raises NotFound, and Conflict if it has ended."""
    run = run_of(connection, run_id)
    if run.has_ended:
        raise Conflict(f"run {run.id} has ended already ({run.state}); there is nothing to stop")
    if run.state == "CANCELING":
        return run
    connection.ask(connection.client.runs.run_service_terminate_run, run_id=run.id)
    return run_of(connection, run.id)


def find_experiment(connection: Connection) -> str | None:
    """The id of our experiment; null if it does not exist."""
    experiments = connection.ask(
        connection.client.experiments.experiment_service_list_experiments,
        filter=name_filter(EXPERIMENT),
        namespace=connection.namespace,
    ).experiments
    return experiments[0].experiment_id if experiments else None


def ensure_experiment(connection: Connection) -> str:
    """The id of our experiment, which is created if necessary."""
    return _ensure_id(lambda: find_experiment(connection), lambda: _create_experiment(connection))


def _ensure_id(find: Callable[[], str | None], make: Callable[[], str]) -> str:
    """The id of an object, which is created if necessary."""
    identifier = find()
    if identifier is None:
        try:
            return make()
        except Conflict:
            identifier = find()  # another process created it meanwhile
            if identifier is None:
                raise
    return identifier


def _create_experiment(connection: Connection) -> str:
    body = connection.client.api_models.V2beta1Experiment(
        display_name=EXPERIMENT, namespace=connection.namespace
    )
    create = connection.client.experiments.experiment_service_create_experiment
    return connection.ask_for_id(create, "experiment_id", experiment=body)


def _pipeline_name(data: bytes) -> str:
    try:
        return str(next(yaml.safe_load_all(data))["pipelineInfo"]["name"])
    except (yaml.YAMLError, StopIteration, KeyError, TypeError) as error:
        raise InputError("the compiled file names no pipeline; compile it again") from error


def _find_pipeline(connection: Connection, name: str) -> str | None:
    pipelines = connection.ask(
        connection.client.pipelines.pipeline_service_list_pipelines,
        filter=name_filter(name),
        namespace=connection.namespace,
    ).pipelines
    return pipelines[0].pipeline_id if pipelines else None


def _create_pipeline(connection: Connection, name: str) -> str:
    body = connection.client.api_models.V2beta1Pipeline(
        name=name, display_name=name, namespace=connection.namespace
    )
    create = connection.client.pipelines.pipeline_service_create_pipeline
    return connection.ask_for_id(create, "pipeline_id", pipeline=body)


def _find_version(connection: Connection, pipeline_id: str, name: str) -> str | None:
    versions = connection.ask(
        connection.client.pipelines.pipeline_service_list_pipeline_versions,
        pipeline_id=pipeline_id,
        filter=name_filter(name),
    ).pipeline_versions
    return versions[0].pipeline_version_id if versions else None


def _upload_version(connection: Connection, pipeline_id: str, name: str, compiled: Path) -> str:
    return connection.ask_for_id(
        connection.client.pipeline_uploads.upload_pipeline_version,
        "pipeline_version_id",
        uploadfile=str(compiled),
        name=name,
        pipelineid=pipeline_id,
    )


def _run(connection: Connection, run: Any) -> PipelineRun:
    # The server gives an active run the end time 0.
    finished = run.finished_at if run.finished_at and run.finished_at.timestamp() else None
    return connection.read(
        PipelineRun,
        id=run.run_id,
        name=run.display_name,
        state=run.state or "PENDING",
        started=run.created_at,
        finished=finished,
        schedule_id=run.recurring_run_id or None,
        failure=(run.error and run.error.message) or "",
        url=f"{connection.url}/#/runs/details/{run.run_id}",
    )
