"""OpenAI's chat protocol: the simulator is a model, and every completion a committed step.

A step is durable before the first byte of its answer is sent, streamed or not. If a stream breaks
off, the client can send the request again. A failure has its own HTTP status, because nothing was
sent before it.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Header, Request, Response

from agentworld.http.errors import failures
from agentworld.http.openai_errors import ChatFailure
from agentworld.serving.authorized_service import AuthorizedService
from agentworld.serving.episodes import session
from agentworld.serving.protocols.base import Protocol
from agentworld.serving.protocols.chat_answer import ChatCompletion, completion, events, to_json
from agentworld.serving.protocols.chat_model import (
    Model,
    ModelList,
    check_model,
    check_pinned,
    model_name,
)
from agentworld.serving.protocols.chat_request import ChatRequest
from agentworld.serving.protocols.chat_session import resolve_episode, take_next, take_single_step
from agentworld.serving.protocols.native import JSON, NewName

_EVENTS = "text/event-stream"

EpisodeName = Annotated[str | None, Header(description="the episode to continue")]


# a coroutine, because FastAPI calls other functions in a thread
async def _authorize(request: Request) -> AuthorizedService:
    """The service with the rights of this caller."""
    return AuthorizedService(request.scope, "openai")


Authorized = Annotated[AuthorizedService, Depends(_authorize)]


router = APIRouter(
    prefix="/runs/{run}/v1",
    tags=["OpenAI"],
    generate_unique_id_function=lambda route: f"openai_{route.name}",
)


def _failures(*statuses: int) -> dict[int | str, dict[str, object]]:
    """The error responses in the declaration of an endpoint."""
    declared = failures(400, *statuses)
    responses = {
        status: {**response, "model": ChatFailure} for status, response in declared.items()
    }
    responses[400]["description"] = "the request is invalid, or differs from the pinned settings"
    return responses


_EVENT = {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]}
_ANSWERS: dict[int | str, dict[str, object]] = {
    200: {"content": {_EVENTS: {"itemSchema": _EVENT}}},  # as OpenAPI 3.2 and FastAPI declare it
    **_failures(404, 409, 422, 429, 502, 503, 504),
}


@router.get("/models", responses=_failures(404, 409, 422, 503))
async def list_models(run: str, authorized: Authorized) -> ModelList:
    """Lists the run's simulator as the only model."""
    return ModelList(data=(Model(id=model_name((await authorized.run(run)).simulator)),))


@router.get("/models/{model}", responses=_failures(404, 409, 422, 503))
async def get_model(run: str, model: str, authorized: Authorized) -> Model:
    """The run's simulator, by its short name or its digest."""
    simulator = (await authorized.run(run)).simulator
    check_model(model, simulator)
    return Model(id=model_name(simulator))


@router.post("/chat/completions", response_model=ChatCompletion, responses=_ANSWERS)
async def complete(
    run: str,
    authorized: Authorized,
    body: ChatRequest,
    x_agentworld_episode: EpisodeName = None,
    idempotency_key: NewName = None,
) -> Response:
    """Takes the last message as a step, and returns its observation.

    `metadata.episode` or the header names the episode. Without a name, a new episode has this one
    step.
    """
    service = await authorized.service_of(run)
    check_model(body.model, service.digest)
    check_pinned(service.manifest.sampling, body)
    episode = resolve_episode(x_agentworld_episode, body)
    if episode is None:
        step = await take_single_step(authorized, run, body, idempotency_key)
    else:
        step = await take_next(authorized, run, body, episode)
    answer = completion(session.to_step_result(service.digest, run, step), step)
    headers = {"x-agentworld-episode": step.episode, "x-agentworld-step": str(step.number)}
    if not body.stream:
        return Response(to_json(answer.model_dump()), 200, headers, JSON)
    with_usage = bool(body.stream_options and body.stream_options.include_usage)
    headers["cache-control"] = "no-cache"
    return Response(events(answer, with_usage), 200, headers, _EVENTS)


def open_protocol(_app: FastAPI) -> Protocol:
    """OpenAI's chat completions."""
    return Protocol(router.routes)
