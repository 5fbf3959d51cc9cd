"""The routes: parse, call, return."""

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request, Response

from agentworld.records.episode import EpisodeOpening, ResetResult
from agentworld.records.run import AgentRun, RunClosing, RunOpening
from agentworld.records.simulator import SimulatorManifest
from agentworld.simulate.failures import failures
from agentworld.simulate.schemas import (
    Health,
    StepRequest,
    read_step,
    write_episode,
    write_step,
)
from agentworld.simulate.service import SimulatorService

router = APIRouter()
_JSON = "application/json"
_STEP_BODY = {
    "requestBody": {
        "required": True,
        "content": {_JSON: {"schema": StepRequest.model_json_schema()}},
    }
}


def _service(request: Request) -> SimulatorService:
    service: SimulatorService = request.app.state.service
    return service


Service = Annotated[SimulatorService, Depends(_service)]
NewName = Annotated[str | None, Header(pattern="^[0-9a-f]{32}$", description="becomes its id")]


@router.post("/runs", responses=failures(404, 409, 422, 503))
async def open_run(
    opening: RunOpening, service: Service, idempotency_key: NewName = None
) -> AgentRun:
    """Opens a run with this simulator; the run never moves to another one.

    A request that is sent again with its `Idempotency-Key` opens no second run.
    """
    return await service.open_run(opening, idempotency_key)


@router.get("/runs/{run}", responses=failures(404, 409, 503))
async def get_run(run: str, service: Service) -> AgentRun:
    """A run with the number of its episodes and steps."""
    return await service.run(run)


@router.post("/runs/{run}/close", responses=failures(404, 409, 422, 503))
async def close_run(run: str, closing: RunClosing, service: Service) -> AgentRun:
    """Closes a run and its open episodes; the same again changes nothing, others are refused."""
    return await service.close_run(run, closing)


@router.post("/reset", responses=failures(404, 409, 422, 503))
async def reset(
    opening: EpisodeOpening, service: Service, idempotency_key: NewName = None
) -> ResetResult:
    """Begins an episode of an open run: new, forked from a recorded one, or a replay of it.

    A request that is sent again with its `Idempotency-Key` begins no second episode.
    """
    return await service.reset(opening, idempotency_key)


@router.post(
    "/step", responses=failures(404, 409, 422, 429, 502, 503, 504), openapi_extra=_STEP_BODY
)
async def step(request: Request, service: Service) -> Response:
    """Takes the next action; a repeated step gets the recorded answer."""
    episode, wanted = read_step(await request.body())
    return Response(write_step(await service.step(episode, wanted)), media_type=_JSON)


@router.get("/state/{episode}", responses=failures(404, 409, 503))
async def get_state(episode: str, service: Service) -> Response:
    """Everything that an episode's answers depend on."""
    return Response(write_episode(await service.episode(episode)), media_type=_JSON)


@router.post("/episodes/{episode}/close", status_code=204, responses=failures(404, 409, 503))
async def close_episode(episode: str, service: Service) -> None:
    """Ends an episode; one that is over stays as it is."""
    await service.close_episode(episode)


@router.get("/manifest", response_model=SimulatorManifest)
async def get_manifest(service: Service) -> Response:
    """What this simulator is pinned to: the very bytes that the header's digest is over."""
    return Response(service.manifest.canonical, media_type=_JSON)


@router.get("/health")
async def get_health(request: Request, service: Service) -> Health:
    """The service listens; without an engine it answers typed refusals."""
    return Health(simulator=service.digest, engines=request.app.state.engine_states())
