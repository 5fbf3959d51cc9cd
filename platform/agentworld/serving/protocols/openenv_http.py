"""OpenEnv over plain HTTP: the requests of its WebSocket, each with the name of its episode, and
the tools of a session by JSON-RPC.

OpenEnv's own server makes a new environment for every request, so every step begins a new episode.
Here a request names the episode that it continues.
"""

import asyncio
import json
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from fastapi import Request as HttpRequest
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from agentworld.errors import EngineError
from agentworld.http.errors import count, failures
from agentworld.http.schemas import Health, Request
from agentworld.records.base import Record
from agentworld.serving.authorized_service import AuthorizedService
from agentworld.serving.protocols.native import JSON, health_of
from agentworld.serving.protocols.openenv_mcp import RpcRequest, RpcResponse, respond
from agentworld.serving.protocols.openenv_session import Fields, OpenEnvSession, to_step_answer

router = APIRouter(
    prefix="/runs/{run}",
    tags=["OpenEnv"],
    generate_unique_id_function=lambda route: f"openenv_{route.name}",
)


class TextAction(Record):
    """An action.

    The class is not called `Action`, because clients take a schema of that name for a tool's call.
    """

    action: str
    metadata: dict[str, JsonValue] = {}


class Step(Record):
    """A step of an episode."""

    action: TextAction
    episode_id: str
    step: int | None = Field(None, ge=1)
    """The number of the step, so that a repeated request is taken once; null for the next step."""
    timeout_s: float | None = Field(None, gt=0, allow_inf_nan=False)
    """The longest time to wait for the answer."""
    request_id: str | None = None
    """For the caller's own logs."""


class Reset(BaseModel):
    """The start of an episode: the fields of an opening except the run."""

    model_config = ConfigDict(extra="allow")

    seed: int | None = Field(None, ge=0, lt=2**53)
    episode_id: str | None = Field(None, min_length=1, max_length=255)
    """The name of an episode: an existing one is continued, a new one is begun once."""


class Observation(Record):
    """The simulator's observation; after a reset, the task's instruction."""

    text: str
    simulator: str
    run: str | None = None
    episode: str
    step: int
    truncated: bool = False
    mean_logprob: float | None = None
    agreement: float | None = None
    low_confidence: bool = False
    control: str | None = None


class StepAnswer(Record):
    """The answer to a reset and to a step."""

    observation: Observation
    reward: float | None
    done: bool


class State(Record):
    """The progress of an episode."""

    episode_id: str
    step_count: int
    run: str
    simulator: str


class Schemas(Record):
    """The JSON schemas of the protocol's messages."""

    action: dict[str, JsonValue]
    observation: dict[str, JsonValue]
    state: dict[str, JsonValue]


class Metadata(Record):
    """The description of this environment."""

    name: str
    description: str
    version: str
    """The digest of everything that shapes an observation."""


# a coroutine, because FastAPI calls other functions in a thread
async def _authorize(request: HttpRequest) -> AuthorizedService:
    return AuthorizedService(request.scope, "openenv")


Authorized = Annotated[AuthorizedService, Depends(_authorize)]

_FAILURES = failures(400, 404, 409, 422, 429, 502, 503, 504)
_encode = json.JSONEncoder(separators=(",", ":")).encode


@router.post("/reset", response_model=StepAnswer, responses=_FAILURES)
async def reset(run: str, authorized: Authorized, body: Reset | None = None) -> Response:
    """Begins an episode, or continues the one of this `episode_id`."""
    fields = body.model_dump(exclude_unset=True) if body else {}
    return _answer(await OpenEnvSession(authorized, run).reset(fields))


@router.post("/step", response_model=StepAnswer, responses=_FAILURES)
async def step(run: str, authorized: Authorized, body: Step) -> Response:
    """Takes the next step of an episode, or repeats an earlier one by its number."""
    await authorized.check_in(run, body.episode_id)
    try:
        async with asyncio.timeout(body.timeout_s):
            result = await authorized.step(body.episode_id, Request(body.step, body.action.action))
    except TimeoutError as error:
        raise EngineError(
            f"there was no answer within {body.timeout_s:g} s; /state says if the step was taken",
            kind="slow",
        ) from error
    return _answer(to_step_answer(result))


@router.get("/state", responses=failures(404, 409, 422, 503))
async def state(run: str, authorized: Authorized, episode_id: Annotated[str, Query()]) -> State:
    """The progress of an episode."""
    await authorized.check_in(run, episode_id)
    episode = await authorized.wait_settled(episode_id)
    fields = {"episode_id": episode.id, "run": episode.run, "simulator": episode.simulator}
    return State(**fields, step_count=len(episode.steps))


@router.get("/schema", responses=failures(404, 409, 422, 503))
async def schema(run: str, authorized: Authorized) -> Schemas:
    """The JSON schemas of an action, an observation and a state; every run has the same."""
    await authorized.simulator_of(run)
    return Schemas(
        action=TextAction.model_json_schema(),
        observation=Observation.model_json_schema(),
        state=State.model_json_schema(),
    )


@router.get("/metadata", responses=failures(404, 409, 422, 503))
async def metadata(run: str, authorized: Authorized) -> Metadata:
    """The description of this environment."""
    manifest = (await authorized.service_of(run)).manifest
    domains = ", ".join(manifest.domains)
    return Metadata(
        name=f"agentworld simulator ({domains})",
        description="A language model, pinned, that answers actions as the world would.",
        version=manifest.digest,
    )


@router.get("/health", responses=failures(404, 409, 422, 503))
async def health(run: str, authorized: Authorized) -> Health:
    """The health of the run's simulator, as `/health` reports it."""
    service = await authorized.service_of(run)
    return health_of(service.digest, service)


@router.post(
    "/mcp",
    response_model=RpcResponse,
    responses=failures(404, 409, 422, 503),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": RpcRequest.model_json_schema()}},
        }
    },
)
async def call_tools(run: str, authorized: Authorized, request: HttpRequest) -> Response:
    """Lists and calls the tools of an episode, creates and closes a session, by JSON-RPC.

    A request that fails is answered with an error of JSON-RPC and status 200, as OpenEnv does.
    """
    await authorized.simulator_of(run)
    body = (await request.body()).decode(errors="replace")
    response, error = await respond(authorized, run, body)
    if error:
        count(request.scope, error)
    return _answer(response)


def _answer(fields: Fields) -> Response:
    """ASCII, because an observation may have lone surrogates."""
    return Response(_encode(fields), media_type=JSON)
