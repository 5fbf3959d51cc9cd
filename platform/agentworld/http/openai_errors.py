"""Errors in OpenAI's form.

Clients of OpenAI's protocol get it at all its paths, even if the connection, the authentication or
the router refused the request.
"""

import re
from http import HTTPStatus
from typing import NamedTuple

from fastapi.exceptions import RequestValidationError

from agentworld.errors import InputError
from agentworld.http.schemas import Problem
from agentworld.records.base import Record

_PATH = re.compile("(/runs/[^/]*)?/v1(/.*)?", re.DOTALL)
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class WrongField(InputError):
    """A field of the request has an invalid value."""

    def __init__(self, param: str, message: str) -> None:
        super().__init__(message)
        self.param = param


class ChatProblem(Record):
    """An error in OpenAI's form."""

    message: str
    type: str
    param: str | None = None
    """The wrong field, if there is one."""
    code: str
    """The kind of failure, as in every protocol."""


class ChatFailure(Record):
    """The body of an error response."""

    error: ChatProblem


class ErrorAnswer(NamedTuple):
    """An error response."""

    status: int
    headers: dict[str, str]
    failure: Record


def is_openai(path: str) -> bool:
    """Whether a path belongs to OpenAI's protocol: a run's, or with a run token at the root."""
    return _PATH.fullmatch(path) is not None


def to_openai(status: int, problem: Problem, error: Exception | None = None) -> ErrorAnswer:
    """The problem in OpenAI's form; its clients retry if a header says that it can help."""
    if status == HTTPStatus.UNPROCESSABLE_ENTITY and problem.kind == "input":
        status = HTTPStatus.BAD_REQUEST
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    chat_problem = ChatProblem(
        message=problem.message, type=kind, param=_param(error), code=problem.kind
    )
    headers = {"x-should-retry": "true" if problem.retryable else "false"}
    return ErrorAnswer(status, headers, ChatFailure(error=chat_problem))


def _param(error: Exception | None) -> str | None:
    """The wrong field, if there is one."""
    match error:
        case WrongField(param=param):
            return param
        case RequestValidationError():
            first = error.errors()[0]
            if first["type"] == "json_invalid":
                return None
            kind, *location = first["loc"]
            # a header's name is followed by the form in which it was read
            return ".".join(map(str, location if kind == "body" else location[:1])) or None
    return None
