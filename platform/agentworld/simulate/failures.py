"""From errors to HTTP: one table, one handler, one body."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from agentworld.client.simulator import SIMULATOR_HEADER
from agentworld.errors import AgentworldError, Conflict, EngineError, InputError, NotFound
from agentworld.simulate.schemas import Failure, Problem

_MEANINGS = {
    404: "there is no such run, episode or route",
    409: "the run is closed, or the step is out of turn",
    422: "the request is wrong, or the episode is too long for the simulator",
    502: "the engine's answer is no observation",
    503: "the engine or the ledger is gone; try again",
}
_ENGINE_STATUS = {"context": 422, "cut-off": 502, "unparsable": 502}


def failures(*statuses: int) -> dict[int | str, dict[str, object]]:
    """The failures that an endpoint declares."""
    return {status: {"model": Failure, "description": _MEANINGS[status]} for status in statuses}


def add_handlers(app: FastAPI) -> None:
    """Answers every error: what the service names, what it cannot read, what it did wrong."""
    for error in (AgentworldError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(error, _answer)


async def _answer(request: Request, error: Exception) -> JSONResponse:
    status, problem = _translate(error)
    # Our own mistakes are answered outside of every middleware, the one that names us included.
    name = {SIMULATOR_HEADER: request.app.state.service.digest}
    return JSONResponse(Failure(error=problem).model_dump(), status, name)


def _translate(error: Exception) -> tuple[int, Problem]:
    message = str(error)
    match error:
        case NotFound():
            return 404, Problem(kind="not-found", message=message, retryable=False)
        case Conflict():
            return 409, Problem(kind="conflict", message=message, retryable=False)
        case InputError():
            return 422, Problem(kind="input", message=message, retryable=False)
        case EngineError(kind=kind, retryable=retryable):
            status = _ENGINE_STATUS.get(kind, 503)
            return status, Problem(kind=kind, message=message, retryable=retryable)
        case AgentworldError(retryable=retryable):
            return 503, Problem(kind="store", message=message, retryable=retryable)
        case RequestValidationError():
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            return 422, Problem(kind="input", message=f"{where}: {first['msg']}", retryable=False)
        case HTTPException(status_code=status, detail=detail):
            return status, Problem(kind="not-found", message=detail, retryable=False)
    return 500, Problem(kind="internal", message="our mistake; see the log", retryable=False)
