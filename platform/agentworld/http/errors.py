"""Maps errors to HTTP responses: one table, one handler, one body."""

import math
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import JsonValue
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route
from starlette.types import Scope

from agentworld.client.simulator import SIMULATOR_HEADER
from agentworld.errors import (
    AccessError,
    AccessFailure,
    AgentworldError,
    ClusterError,
    Conflict,
    EngineError,
    EngineFailure,
    InputError,
    NotFound,
)
from agentworld.http.naming import AnsweringSimulator
from agentworld.http.openai_errors import is_openai, to_openai
from agentworld.http.schemas import Failure, Problem

MEANINGS = {
    400: "the request cannot be read",
    401: "the credential is missing or unknown; our commands and clients send"
    " AGENTWORLD_CREDENTIAL",
    403: "the caller lacks the role for this, or the tenant may not use the simulator",
    404: "there is no such run, episode, simulator or route",
    408: "the request did not arrive in time; try again",
    409: "the run is closed, or the step is out of turn",
    413: "the body is too large; send less",
    422: "the request is wrong, or the episode is too long for the simulator",
    429: "over capacity, or over the tenant's limits; try again after the seconds in Retry-After",
    502: "the engine's answer has no observation, or its confidence is too low",
    503: "the engine or the ledger is unavailable, or the service is full; try again after the"
    " seconds in Retry-After",
    504: "the engine did not answer before its timeout; try again",
}
JsonObject = dict[str, JsonValue]

_HEADERS = {
    SIMULATOR_HEADER: {
        "description": "the simulator; always set by a service with one simulator",
        "schema": {"type": "string"},
    },
    "retry-after": {"description": "seconds until a retry", "schema": {"type": "integer"}},
}
# the recovery time of a database is unknown, and mostly that of an engine
_PAUSE_SECONDS = 1.0
_ACCESS_STATUS: dict[AccessFailure, int] = {
    "unauthorised": 401,
    "forbidden": 403,
    "limit": 429,
    "unavailable": 503,
}
_ENGINE_STATUS: dict[EngineFailure, int] = {
    "engine": 503,
    "starting": 503,
    "open": 503,
    "slow": 504,
    "capacity": 429,
    "refused": 502,
    "context": 422,
    "cut-off": 502,
    "unparsable": 502,
    "unsure": 502,
}


_BEFORE_ANY_ENDPOINT = (401, 408, 413)
"""The statuses of requests that are refused before any endpoint gets them."""


def failures(*statuses: int) -> dict[int | str, dict[str, object]]:
    """The error responses that an endpoint declares."""
    every = sorted({*statuses, *_BEFORE_ANY_ENDPOINT, 403})
    fields = {"model": Failure, "headers": _HEADERS}
    return {status: {**fields, "description": MEANINGS[status]} for status in every}


def add_handlers(app: FastAPI) -> None:
    """Adds the handlers of all errors: ours, unreadable requests, and internal errors."""
    error_types = AgentworldError, RequestValidationError, HTTPException, ClientDisconnect
    for error in (*error_types, Exception):
        app.add_exception_handler(error, _answer)


async def _answer(request: Request, error: Exception) -> Response:
    path, method = request.scope["path"], request.method
    if isinstance(error, HTTPException) and error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allow = ", ".join(sorted(_methods(request.scope)))
        if method == "OPTIONS":
            return Response(status_code=HTTPStatus.NO_CONTENT, headers={"allow": allow})
        sentence = f"{path[:80]!r} does not take {method}; send {allow}"
        error = HTTPException(error.status_code, sentence, {"allow": allow})
    elif isinstance(error, HTTPException) and error.status_code == HTTPStatus.NOT_FOUND:
        error = HTTPException(error.status_code, f"nothing is at {path[:80]!r}; see /docs")
    elif isinstance(error, RequestValidationError) and _is_other_than_json(request, error):
        content_type = request.headers.get("content-type", "none")
        error = InputError(
            f"the body's content type is {content_type[:80]!r}; send JSON, with the header"
            " `content-type: application/json`"
        )
    status, headers, body = answer_of(error, path)
    count(request.scope, error)
    # Internal errors are handled outside of all middleware, including the one that adds the
    # simulator's digest.
    return JSONResponse(body, status, headers | AnsweringSimulator.of(request.scope).headers)


def _is_other_than_json(request: Request, error: RequestValidationError) -> bool:
    """Whether a body was not parsed as JSON because of its content type."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = media_type == "application/json" or media_type.endswith("+json")
    return not is_json and error.errors()[0]["loc"] == ("body",)


def _methods(scope: Scope) -> set[str]:
    """The methods of all routes at this address, because each route knows its own only."""
    routes = [route for route in scope["app"].routes if isinstance(route, Route)]
    matching = [route for route in routes if route.matches(scope)[0] != Match.NONE]
    return {"OPTIONS"}.union(*(route.methods or () for route in matching))


def answer_of(error: Exception, path: str = "") -> tuple[int, dict[str, str], JsonObject]:
    """Status, headers and body of the response to an error, in the protocol of its path."""
    status, problem = _translate(error)
    headers = {"content-type": "application/json"}
    if isinstance(error, HTTPException):  # the methods that the routes accept
        headers |= error.headers or {}
    if problem.retry_after_seconds is not None:
        headers["retry-after"] = str(math.ceil(problem.retry_after_seconds))
    if is_openai(path):
        status, retry_headers, failure = to_openai(status, problem, error)
        return status, headers | retry_headers, failure.model_dump()
    return status, headers, Failure(error=problem).model_dump()


def count(scope: Scope, error: Exception) -> None:
    """Counts a failed request."""
    scope["app"].state.app_state.episode_store.metrics.count_problem(problem_of(error).kind)


def problem_of(error: Exception) -> Problem:
    """The problem of an error, the same for every protocol."""
    return _translate(error)[1]


def _pause(retryable: bool) -> float | None:
    return _PAUSE_SECONDS if retryable else None


def _translate(error: Exception) -> tuple[int, Problem]:
    message = str(error)
    match error:
        case NotFound():
            return 404, Problem(kind="not-found", message=message, retryable=False)
        case Conflict():
            return 409, Problem(kind="conflict", message=message, retryable=False)
        case InputError():
            return 422, Problem(kind="input", message=message, retryable=False)
        case AccessError(kind=refusal, retryable=retryable, retry_after_seconds=pause):
            wait = pause or _pause(retryable)
            problem = Problem(
                kind=refusal, message=message, retryable=retryable, retry_after_seconds=wait
            )
            return _ACCESS_STATUS[refusal], problem
        case EngineError(kind=kind, retryable=retryable, retry_after_seconds=pause):
            wait = pause or _pause(retryable)
            problem = Problem(
                kind=kind, message=message, retryable=retryable, retry_after_seconds=wait
            )
            return _ENGINE_STATUS[kind], problem
        case AgentworldError(retryable=retryable):
            problem_kind = "unavailable" if isinstance(error, ClusterError) else "store"
            wait = _pause(retryable)
            problem = Problem(
                kind=problem_kind, message=message, retryable=retryable, retry_after_seconds=wait
            )
            return 503, problem
        case RequestValidationError():
            first = error.errors()[0]
            location = ".".join(str(part) for part in first["loc"])
            return 422, Problem(
                kind="input", message=f"{location}: {first['msg']}", retryable=False
            )
        case HTTPException(status_code=status, detail=detail):
            problem_kind = "not-found" if status in (404, 405) else "input"
            return status, Problem(kind=problem_kind, message=detail, retryable=False)
        case ClientDisconnect():  # the client has gone
            return 400, Problem(
                kind="input", message="the client closed the connection", retryable=True
            )
    return 500, Problem(kind="internal", message="internal error; see the log", retryable=False)
