"""A Kubeflow Pipelines server on loopback, with the API of runs and schedules.

It serves the v2beta1 REST API by the types of `kfp-server-api`, keeps its state in memory, and
refuses the same requests as the real one, with the messages and codes of its sources: unknown ids
and fields, existing names, an invalid pipeline file, arguments that do not fit it, an invalid cron
expression. It runs nothing: a test sets the states of runs, and triggers schedules. There is no
authorization beyond one token, and no cache, artifact or task.
"""

import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import kfp_server_api as api
import uvicorn
import yaml
from fastapi import FastAPI, Request, Response, UploadFile
from fastapi.responses import JSONResponse
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

import make.service
from agentworld.engine.process import LOOPBACK, free_port
from fakes.kfp_wire import Refused, answered, listed, parsed, refuse_cron

_NEVER = datetime.fromtimestamp(0, UTC)
_GOING = ("PENDING", "RUNNING", "PAUSED")
_CODES = {400: 3, 401: 16, 404: 5, 409: 6, 503: 14}


class KfpServer:
    """The server's state, and the controls of a test."""

    def __init__(self) -> None:
        self.url = ""
        self.experiments: dict[str, Any] = {}
        self.pipelines: dict[str, Any] = {}
        self.versions: dict[str, Any] = {}
        self.runs: dict[str, Any] = {}
        self.schedules: dict[str, Any] = {}
        self.requests: list[str] = []
        """Methods and paths of requests."""
        self.most_enabled = 0
        """The maximum number of schedules of one name that were enabled at the same time."""
        self.killed: list[str] = []
        """Runs whose pods were deleted with their schedule; their state never ends."""
        self.token = ""
        """Requests without it are unauthenticated; if empty, all are admitted."""
        self.says: str | None = None
        """A page that answers every request, as a proxy in front of the server does."""
        self.largest_page = 200
        self.is_multi_user = False
        self.before: Callable[[int], bool] = lambda _number: False
        """Whether the server is down for a request, by its number."""
        self.after: Callable[[int], bool] = lambda _number: False
        """Whether the response is lost after a request was processed, by its number."""
        self.course: list[str] = []
        """The states of a run, one for each time that it is read."""
        self._clock = itertools.count()
        self._ids = itertools.count(1)

    def enabled(self, name: str) -> list[Any]:
        """The enabled schedules of a name."""
        snapshot = list(self.schedules.values())  # the server may change it during a test's request
        schedules = [item for item in snapshot if item.display_name == name]
        return [item for item in schedules if item.mode == "ENABLE"]

    def put(self, run_id: str, state: str, failure: str = "") -> None:
        """Sets the state of a run."""
        run = self.runs[run_id]
        run.state = state
        if failure:
            run.error = api.GoogleRpcStatus(code=13, message=failure)
        if state not in (*_GOING, "CANCELING"):
            run.finished_at = self.now()

    def fire(self, schedule_id: str) -> Any:
        """Triggers a schedule."""
        schedule = self.schedules[schedule_id]
        assert schedule.mode == "ENABLE"
        return self.add_run(
            api.V2beta1Run(
                experiment_id=schedule.experiment_id,
                display_name=f"{schedule.display_name}-{len(self.runs)}",
                pipeline_version_reference=schedule.pipeline_version_reference,
                runtime_config=schedule.runtime_config,
                recurring_run_id=schedule_id,
            )
        )

    def add_run(self, run: Any) -> Any:
        run.run_id, run.state = self.new_id(), "PENDING"
        run.created_at, run.finished_at = self.now(), _NEVER
        self.runs[run.run_id] = run
        return run

    def now(self) -> datetime:
        """The time, which advances by a second with each call."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(self._clock))

    def new_id(self) -> str:
        return f"00000000-0000-4000-8000-{next(self._ids):012}"

    def one(self, kind: str, items: dict[str, Any], name: str) -> Any:
        if name not in items:
            raise Refused(404, f"{kind} {name} not found")
        return items[name]

    def refuse_arguments(self, request: Any) -> None:
        """Checks arguments by the compiled pipeline's inputs."""
        reference = request.pipeline_version_reference
        if reference is None or request.experiment_id is None:
            raise Refused(400, "a pipeline version and an experiment are required")
        self.one("Experiment", self.experiments, request.experiment_id)
        version = self.one("PipelineVersion", self.versions, reference.pipeline_version_id)
        if version.pipeline_id != reference.pipeline_id:
            raise Refused(400, "the version is not of this pipeline")
        spec = version.pipeline_spec
        root = spec.get("pipeline_spec", spec)["root"]
        inputs = root.get("inputDefinitions", {}).get("parameters", {})
        arguments = (request.runtime_config and request.runtime_config.parameters) or {}
        for name, spec in inputs.items():
            if name not in arguments and "defaultValue" not in spec and not spec.get("isOptional"):
                raise Refused(
                    400,
                    f"parameter {name} is not optional, yet has neither default value nor user"
                    " provided value",
                )
            if spec["parameterType"] == "STRING" and not isinstance(arguments.get(name, ""), str):
                raise Refused(400, f"input parameter {name} requires type string")
        if extra := sorted(set(arguments) - set(inputs)):
            raise Refused(
                400, f"parameter(s) provided are not required by pipeline: {', '.join(extra)}"
            )

    def refuse_namespace(self, namespace: str | None) -> None:
        if self.is_multi_user and not namespace:
            raise Refused(400, "a namespace is required in multi-user mode")
        if namespace and not self.is_multi_user:
            raise Refused(400, "in single-user mode the request should not contain a namespace")

    def saw_schedules(self) -> None:
        names = {schedule.display_name for schedule in self.schedules.values()}
        num_enabled = max((len(self.enabled(name)) for name in names), default=0)
        self.most_enabled = max(self.most_enabled, num_enabled)


@contextmanager
def running() -> Iterator[KfpServer]:
    """A server that listens while the block runs."""
    state, port = KfpServer(), free_port()
    config = uvicorn.Config(_app(state), host=LOOPBACK, port=port, log_level="error")
    state.url = f"http://{LOOPBACK}:{port}"
    with make.service.running(make.service.PromptServer(config)):
        yield state


def _app(state: KfpServer) -> FastAPI:
    app = FastAPI()
    for add in (_add_experiments, _add_pipelines, _add_runs, _add_schedules):
        add(app, state)

    @app.get(f"{_ROOT}/healthz")
    async def healthz() -> Response:
        return answered(api.V2beta1GetHealthzResponse(multi_user=state.is_multi_user))

    @app.middleware("http")
    async def gate(request: Request, proceed: Callable[[Request], Awaitable[Response]]) -> Response:
        number = len(state.requests)
        state.requests.append(f"{request.method} {request.url.path.removeprefix(_ROOT)}")
        if state.says is not None:
            return Response(state.says, media_type="text/html")
        if state.token and request.headers.get("authorization") != f"Bearer {state.token}":
            return _refusal(401, "the request is not authenticated")
        if state.before(number):
            return _refusal(503, "the server is down")
        answer = await proceed(request)
        state.saw_schedules()
        return _refusal(503, "the answer is lost") if state.after(number) else answer

    @app.exception_handler(Refused)
    async def refuse(_request: Request, error: Refused) -> Response:
        return _refusal(error.status, str(error))

    return app


_ROOT = "/apis/v2beta1"


def _refusal(status: int, message: str) -> Response:
    """A refusal in the format of grpc-gateway."""
    body = {"error": message, "code": _CODES[status], "message": message, "details": []}
    return JSONResponse(body, status)


def _add_experiments(app: FastAPI, state: KfpServer) -> None:
    @app.get(f"{_ROOT}/experiments")
    async def list_(request: Request) -> Response:
        state.refuse_namespace(request.query_params.get("namespace"))
        return listed("Experiments", state.experiments, request, state.largest_page)

    @app.post(f"{_ROOT}/experiments")
    async def create(request: Request) -> Response:
        new_experiment = parsed(await request.json(), "V2beta1Experiment")
        state.refuse_namespace(new_experiment.namespace)
        if not new_experiment.display_name:
            raise Refused(400, "an experiment's name is empty")
        if new_experiment.display_name in {
            experiment.display_name for experiment in state.experiments.values()
        }:
            raise Refused(409, f"the name {new_experiment.display_name} already exists")
        new_experiment.experiment_id, new_experiment.created_at = state.new_id(), state.now()
        state.experiments[new_experiment.experiment_id] = new_experiment
        return answered(new_experiment)


def _add_pipelines(app: FastAPI, state: KfpServer) -> None:
    @app.get(f"{_ROOT}/pipelines")
    async def list_(request: Request) -> Response:
        return listed("Pipelines", state.pipelines, request, state.largest_page)

    @app.post(f"{_ROOT}/pipelines")
    async def create(request: Request) -> Response:
        new_pipeline = parsed(await request.json(), "V2beta1Pipeline")
        if new_pipeline.name in {pipeline.name for pipeline in state.pipelines.values()}:
            raise Refused(409, f"the name {new_pipeline.name} already exists")
        new_pipeline.pipeline_id, new_pipeline.created_at = state.new_id(), state.now()
        state.pipelines[new_pipeline.pipeline_id] = new_pipeline
        return answered(new_pipeline)

    @app.get(f"{_ROOT}/pipelines/{{pipeline}}/versions")
    async def list_versions(request: Request, pipeline: str) -> Response:
        state.one("Pipeline", state.pipelines, pipeline)
        versions = {
            name: stored_version
            for name, stored_version in state.versions.items()
            if stored_version.pipeline_id == pipeline
        }
        return listed("PipelineVersions", versions, request, state.largest_page)

    @app.post(f"{_ROOT}/pipelines/upload_version")
    async def upload(uploadfile: UploadFile, name: str, pipelineid: str) -> Response:
        if pipelineid not in state.pipelines:
            return _upload_refused(400)
        spec = _spec(await uploadfile.read())
        own = (version for version in state.versions.values() if version.pipeline_id == pipelineid)
        if spec is None or name in {item.name for item in own}:
            return _upload_refused(400 if spec is None else 409)
        new_version = api.V2beta1PipelineVersion(
            pipeline_id=pipelineid,
            pipeline_version_id=state.new_id(),
            name=name,
            display_name=name,
            created_at=state.now(),
            pipeline_spec=spec,
        )
        state.versions[new_version.pipeline_version_id] = new_version
        return answered(new_version)


def _spec(data: bytes) -> dict[str, Any] | None:
    """The pipeline of a file, with its platform part if it has one; null if it is invalid."""
    try:
        first, *platform = yaml.safe_load_all(data)
        spec = json_format.ParseDict(first, pipeline_spec_pb2.PipelineSpec())
        for document in platform:
            json_format.ParseDict(document, pipeline_spec_pb2.PlatformSpec())
    except (yaml.YAMLError, json_format.ParseError, ValueError, AttributeError, TypeError):
        return None
    if len(platform) > 1 or not (spec.pipeline_info.name and spec.root.dag.tasks):
        return None
    return {"pipeline_spec": first, "platform_spec": platform[0]} if platform else first


def _upload_refused(status: int) -> Response:
    """Uploads bypass the gateway, and have their own messages."""
    body = {"error_message": "Failed to create a pipeline version", "error_details": ""}
    return JSONResponse(body, status)


def _add_runs(app: FastAPI, state: KfpServer) -> None:
    @app.get(f"{_ROOT}/runs")
    async def list_(request: Request) -> Response:
        return listed("Runs", state.runs, request, state.largest_page)

    @app.post(f"{_ROOT}/runs")
    async def create(request: Request) -> Response:
        new_run = parsed(await request.json(), "V2beta1Run")
        if not new_run.display_name:
            raise Refused(400, "a run's name is empty")
        state.refuse_arguments(new_run)
        return answered(state.add_run(new_run))

    @app.get(f"{_ROOT}/runs/{{run}}")
    async def get(run: str) -> Response:
        stored_run = state.one("Run", state.runs, run)
        if state.course and stored_run.state in _GOING:
            state.put(run, state.course.pop(0))
        return answered(stored_run)

    @app.post(f"{_ROOT}/runs/{{run}}:terminate")
    async def terminate(run: str) -> Response:
        if state.one("Run", state.runs, run).state not in _GOING:
            raise Refused(400, f"Failed to terminate a run {run}. Row not found")
        state.put(run, "CANCELING")
        return JSONResponse({})


def _add_schedules(app: FastAPI, state: KfpServer) -> None:
    path = f"{_ROOT}/recurringruns"

    @app.get(path)
    async def list_(request: Request) -> Response:
        return listed("RecurringRuns", state.schedules, request, state.largest_page)

    @app.post(path)
    async def create(request: Request) -> Response:
        new_schedule = parsed(await request.json(), "V2beta1RecurringRun")
        state.refuse_arguments(new_schedule)
        if not 1 <= int(new_schedule.max_concurrency or 0) <= 10:
            raise Refused(400, "The max concurrency of the recurring run is out of range")
        if new_schedule.mode not in ("ENABLE", "DISABLE"):
            raise Refused(400, "a recurring run's mode is not set")
        refuse_cron(
            new_schedule.trigger
            and new_schedule.trigger.cron_schedule
            and new_schedule.trigger.cron_schedule.cron
        )
        new_schedule.recurring_run_id, new_schedule.created_at = state.new_id(), state.now()
        state.schedules[new_schedule.recurring_run_id] = new_schedule
        return answered(new_schedule)

    @app.get(path + "/{schedule}")
    async def get(schedule: str) -> Response:
        return answered(state.one("Job", state.schedules, schedule))

    @app.delete(path + "/{schedule}")
    async def delete(schedule: str) -> Response:
        state.one("Job", state.schedules, schedule)
        del state.schedules[schedule]
        schedule_runs = (run for run in state.runs.values() if run.recurring_run_id == schedule)
        state.killed += [run.run_id for run in schedule_runs if run.state in (*_GOING, "CANCELING")]
        return JSONResponse({})

    @app.post(path + "/{schedule}:{mode}")
    async def change(schedule: str, mode: str) -> Response:
        state.one("Job", state.schedules, schedule).mode = mode.upper()
        return JSONResponse({})
