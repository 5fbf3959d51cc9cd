"""The routes: parse, call, return."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from agentworld.records.run import (
    AgentRun,
    Episode,
    EpisodeOpening,
    ResetResult,
    RunOpening,
    StepResult,
)
from agentworld.records.simulator import SimulatorManifest
from agentworld.simulate import session
from agentworld.simulate.failures import failures
from agentworld.simulate.schemas import Health, RunClosing, StepRequest
from agentworld.simulate.service import SimulatorService

router = APIRouter()


def _service(request: Request) -> SimulatorService:
    service: SimulatorService = request.app.state.service
    return service


Service = Annotated[SimulatorService, Depends(_service)]


@router.post("/runs", responses=failures(422, 503))
async def open_run(opening: RunOpening, service: Service) -> AgentRun:
    """Opens a run with this simulator; the run never moves to another one."""
    return await service.open_run(opening)


@router.get("/runs/{run}", responses=failures(404, 409, 503))
async def get_run(run: str, service: Service) -> AgentRun:
    """A run with the number of its episodes and steps."""
    return await service.run(run)


@router.post("/runs/{run}/close", responses=failures(404, 409, 422, 503))
async def close_run(run: str, closing: RunClosing, service: Service) -> AgentRun:
    """Closes a run; the same weights again change nothing, other weights are refused."""
    return await service.close_run(run, closing.final_weights)


@router.post("/reset", responses=failures(404, 409, 422, 503))
async def reset(opening: EpisodeOpening, service: Service) -> ResetResult:
    """Begins an episode of an open run."""
    return await service.reset(opening)


@router.post("/step", responses=failures(404, 409, 422, 502, 503))
async def step(request: StepRequest, service: Service) -> StepResult:
    """Takes the next action; a repeated step gets the recorded answer."""
    return await service.step(request.episode, session.Request(request.step, request.action))


@router.get("/state/{episode}", responses=failures(404, 409, 503))
async def get_state(episode: str, service: Service) -> Episode:
    """Everything that an episode's answers depend on."""
    return await service.episode(episode)


@router.get("/manifest")
async def get_manifest(service: Service) -> SimulatorManifest:
    """What this simulator is pinned to; its digest is the header's."""
    return service.manifest


@router.get("/health")
async def get_health(service: Service) -> Health:
    """The service listens."""
    return Health(simulator=service.digest)
