"""OpenAI's chat wire: the simulator is a model, and every completion a committed step.

An answer is written down before its first byte is sent, streamed or not: a stream's events are made
of a step that is durable, so that one that breaks off is asked for again, and its status says what
went wrong while one still can.
"""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from agentworld.errors import AgentworldError
from agentworld.simulate import session
from agentworld.simulate.doors.chat_answer import ChatCompletion, completion, events, written
from agentworld.simulate.doors.chat_model import (
    Model,
    ModelList,
    check_model,
    check_pinned,
    model_name,
)
from agentworld.simulate.doors.chat_session import named, take_alone, take_next
from agentworld.simulate.doors.chat_wire import ChatFailure, ChatProblem, ChatRequest, WrongField
from agentworld.simulate.doors.native import JSON, NewName
from agentworld.simulate.entrance import Entrance
from agentworld.simulate.failures import (
    BEFORE_ANY_WIRE,
    answer_of,
    count,
    failures,
    problem_of,
)

_EVENTS = "text/event-stream"
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}

EpisodeName = Annotated[str | None, Header(description="the episode that goes on")]


class _Route(APIRoute):
    """Says what went wrong as OpenAI does."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def told(request: Request) -> Response:
            try:
                return await handle(request)
            except (AgentworldError, RequestValidationError, HTTPException) as error:
                count(request.scope, error)
                return _failure(error)

        return told


# A coroutine, for FastAPI calls anything else in a thread.
async def _entrance(request: Request) -> Entrance:
    """The service as this caller sees it."""
    return Entrance(request.scope, "openai")


Entered = Annotated[Entrance, Depends(_entrance)]


router = APIRouter(
    prefix="/runs/{run}/v1",
    tags=["OpenAI"],
    route_class=_Route,
    generate_unique_id_function=lambda route: f"openai_{route.name}",
)


def _failures(*statuses: int) -> dict[int | str, dict[str, object]]:
    """As they are declared; some are turned away before any wire."""
    declared = failures(400, *statuses)
    told = {status: {**said, "model": ChatFailure} for status, said in declared.items()}
    told[400]["description"] = "the request is wrong, or asks for what this simulator is not"
    return {**told, **{status: declared[status] for status in BEFORE_ANY_WIRE}}


_EVENT = {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]}
_ANSWERS: dict[int | str, dict[str, object]] = {
    200: {"content": {_EVENTS: {"itemSchema": _EVENT}}},  # as OpenAPI 3.2 and FastAPI say it
    **_failures(404, 409, 422, 429, 502, 503, 504),
}


@router.get("/models", responses=_failures(404, 409, 422, 503))
async def list_models(run: str, entered: Entered) -> ModelList:
    """The run's simulator, and no other."""
    return ModelList(data=(Model(id=model_name((await entered.run(run)).simulator)),))


@router.get("/models/{model}", responses=_failures(404, 409, 422, 503))
async def get_model(run: str, model: str, entered: Entered) -> Model:
    """The run's simulator, by its short name or by its digest."""
    simulator = (await entered.run(run)).simulator
    check_model(model, simulator)
    return Model(id=model_name(simulator))


@router.post("/chat/completions", response_model=ChatCompletion, responses=_ANSWERS)
async def complete(
    run: str,
    entered: Entered,
    asked: ChatRequest,
    x_agentworld_episode: EpisodeName = None,
    idempotency_key: NewName = None,
) -> Response:
    """The observation of the last message, which is a step of an episode.

    Of the one that `metadata.episode` or the header names, else of a new one with this one step.
    """
    service = await entered.service_of(run)
    check_model(asked.model, service.digest)
    check_pinned(service.manifest.sampling, asked)
    episode = named(x_agentworld_episode, asked)
    if episode is None:
        step = await take_alone(entered, run, asked, idempotency_key)
    else:
        step = await take_next(entered, run, asked, episode)
    answer = completion(session.answered(service.digest, run, step), step)
    headers = {"x-agentworld-episode": step.episode, "x-agentworld-step": str(step.number)}
    if not asked.stream:
        return Response(written(answer.model_dump()), 200, headers, JSON)
    with_usage = bool(asked.stream_options and asked.stream_options.include_usage)
    headers["cache-control"] = "no-cache"
    return Response(events(answer, with_usage), 200, headers, _EVENTS)


def _failure(error: Exception) -> Response:
    """In OpenAI's envelope; its clients try again where they are told that it can help."""
    status, headers, _ = answer_of(error)
    problem = problem_of(error)
    if problem.kind == "input":
        status = 400
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    told = ChatProblem(message=problem.message, type=kind, param=_param(error), code=problem.kind)
    headers["x-should-retry"] = "true" if problem.retryable else "false"
    return Response(written(ChatFailure(error=told).model_dump()), status, headers)


def _param(error: Exception) -> str | None:
    """The field that is wrong, where it is one."""
    match error:
        case WrongField(param=param):
            return param
        case RequestValidationError():
            first = error.errors()[0]
            if first["type"] == "json_invalid":
                return None
            kind, *where = first["loc"]
            # Behind a header's name stands which of its forms it was read as.
            return ".".join(map(str, where if kind == "body" else where[:1])) or None
    return None
