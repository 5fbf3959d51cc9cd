"""The native HTTP protocol, in which a repeated step is taken once."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Header, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import StringConstraints
from pydantic.json_schema import SkipJsonSchema

from agentworld.http.errors import failures
from agentworld.http.schemas import (
    EPISODE,
    STEP_RESULT,
    Health,
    HealthStatus,
    StepRequest,
    read_step,
    write_episode,
    write_step,
)
from agentworld.records.base import Digest
from agentworld.records.episode import EpisodeOpening, ResetResult
from agentworld.records.run import AgentRun, OpenedRun, RunClosing, RunOpening
from agentworld.records.simulator import SimulatorManifest
from agentworld.records.statements.edge import Claim, SignedEdge
from agentworld.records.step_statement import StepStatement
from agentworld.serving.authorized_service import AuthorizedService
from agentworld.serving.protocols.base import Protocol
from agentworld.serving.protocols.links import OF_A_RUN, OF_AN_EPISODE
from agentworld.serving.service import SimulatorService
from agentworld.serving.simulators.connections import Simulators

# Operation ids are the names of the functions below, so that links stay valid if a path changes.
router = APIRouter(generate_unique_id_function=lambda route: route.name)
_STATUS: dict[tuple[bool, bool], HealthStatus] = {
    (True, False): "healthy",
    (True, True): "degraded",
    (False, True): "unhealthy",
    (False, False): "healthy",  # no replica has been used yet
}
"""By two flags: whether any engine gets requests, and whether any engine's breaker is open."""
JSON = "application/json"
_STEP_BODY = {
    "requestBody": {
        "required": True,
        "content": {JSON: {"schema": StepRequest.model_json_schema()}},
    }
}


# a coroutine, because FastAPI calls other functions in a thread
async def authorize(request: Request) -> AuthorizedService:
    """The service with the rights of this caller."""
    return AuthorizedService(request.scope)


Authorized = Annotated[AuthorizedService, Depends(authorize)]
_Name = Annotated[str, StringConstraints(pattern="^[0-9a-f]{32}$")]
NewName = Annotated[_Name | SkipJsonSchema[None], Header(description="becomes its id")]


@router.post("/runs", responses=failures(400, 404, 409, 422, 429, 503) | OF_A_RUN)
async def open_run(
    opening: RunOpening, authorized: Authorized, idempotency_key: NewName = None
) -> OpenedRun:
    """Opens a run with a simulator and returns its token; the run keeps this simulator.

    A repeated request with the same `Idempotency-Key` opens no second run.
    """
    return await authorized.open_run(opening, idempotency_key)


@router.get("/runs/{run}", responses=failures(404, 409, 422, 503))
async def get_run(run: str, authorized: Authorized) -> AgentRun:
    """A run with the number of its episodes and steps."""
    return await authorized.run(run)


@router.post("/runs/{run}/close", responses=failures(400, 404, 409, 422, 503))
async def close_run(run: str, closing: RunClosing, authorized: Authorized) -> AgentRun:
    """Closes a run and its open episodes; the same request changes nothing, another is refused."""
    return await authorized.close_run(run, closing)


@router.put("/runs/{run}/edge", responses=failures(400, 404, 409, 422, 503))
async def attest(run: str, claim: Claim, authorized: Authorized) -> SignedEdge:
    """Signs which simulator made an agent, with a grade by the run's signed record.

    A repeated request is signed once. A claim that contradicts the record is graded `disputed`.
    """
    return await authorized.attest(run, claim)


@router.put("/statements", responses=failures(400, 409, 422, 503))
async def file(statement: StepStatement, authorized: Authorized) -> str:
    """Stores a statement that a step signed: for a version that it registered or an agent that it
    validated. A repeated request is stored once.
    """
    return await authorized.file(statement)


@router.post("/episodes", responses=failures(400, 404, 409, 422, 429, 503) | OF_AN_EPISODE)
async def reset(
    opening: EpisodeOpening, authorized: Authorized, idempotency_key: NewName = None
) -> ResetResult:
    """Begins an episode of an open run: new, forked from a recorded one, or a replay of it.

    A repeated request with the same `Idempotency-Key` begins no second episode.
    """
    return await authorized.reset(opening, idempotency_key)


@router.post(
    "/steps",
    response_model=STEP_RESULT,
    responses=failures(404, 409, 422, 429, 502, 503, 504) | OF_AN_EPISODE,
    openapi_extra=_STEP_BODY,
)
async def step(request: Request, authorized: Authorized) -> Response:
    """Takes the next action; a repeated step gets the recorded answer."""
    episode, step_request = read_step(await request.body())
    return Response(write_step(await authorized.step(episode, step_request)), media_type=JSON)


@router.get("/episodes/{episode}", response_model=EPISODE, responses=failures(404, 409, 422, 503))
async def get_state(episode: str, authorized: Authorized) -> Response:
    """Everything that an episode's answers depend on."""
    return Response(write_episode(await authorized.episode(episode)), media_type=JSON)


@router.post("/episodes/{episode}/close", status_code=204, responses=failures(404, 409, 422, 503))
async def close_episode(episode: str, authorized: Authorized) -> None:
    """Ends an episode; one that has ended stays unchanged."""
    await authorized.close_episode(episode)


@router.get("/manifest", response_model=SimulatorManifest, responses=failures(404, 503))
async def get_manifest(authorized: Authorized) -> Response:
    """The manifest of the only simulator: the bytes that the header's digest covers."""
    return Response((await authorized.manifest()).canonical, media_type=JSON)


@router.get(
    "/simulators/{simulator}/manifest",
    response_model=SimulatorManifest,
    responses=failures(404, 409, 422, 503),
)
async def get_manifest_of(simulator: Digest, authorized: Authorized) -> Response:
    """The manifest of a simulator: the bytes that the digest covers."""
    return Response((await authorized.manifest(simulator)).canonical, media_type=JSON)


@router.get("/metrics", responses=failures(503), response_class=PlainTextResponse)
async def get_metrics(request: Request, authorized: Authorized) -> Response:
    """The metrics of this replica for Prometheus; for operators."""
    authorized.caller.check("operator")
    accept = request.headers.get("accept", "")
    render = request.app.state.app_state.episode_store.metrics.render
    body, media_type = await asyncio.to_thread(render, accept)
    return Response(body, media_type=media_type)


@router.get("/health")
async def get_health(request: Request) -> Health:
    """The health of the service; without an engine it answers with typed errors."""
    simulators: Simulators = request.app.state.app_state.simulators
    return health_of(simulators.single, *simulators.connected.values())


def health_of(simulator: Digest | None, *services: SimulatorService) -> Health:
    """The health of these engines."""
    states = {state for service in services for state in service.states().values()}
    return Health(simulator=simulator, status=_STATUS[bool(states - {"open"}), "open" in states])


def open_protocol(_app: FastAPI) -> Protocol:
    """Runs and episodes over plain HTTP."""
    return Protocol(router.routes)
