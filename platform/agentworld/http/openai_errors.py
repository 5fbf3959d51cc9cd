"""What went wrong, in OpenAI's words. Its clients are told so at every address of theirs, also
where a request comes no further than the connection, the gate or the router.
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
    """A field of the request that cannot be as it is."""

    def __init__(self, param: str, message: str) -> None:
        super().__init__(message)
        self.param = param


class ChatProblem(Record):
    """What went wrong."""

    message: str
    type: str
    param: str | None = None
    """The field that is wrong, where it is one."""
    code: str
    """The kind of failure, as every protocol names it."""


class ChatFailure(Record):
    """The body of every answer that is none."""

    error: ChatProblem


class ErrorAnswer(NamedTuple):
    """How a failure is answered."""

    status: int
    headers: dict[str, str]
    failure: Record


def is_openai(path: str) -> bool:
    """Whether an address is of OpenAI's protocol: a run's, or with a run's token at the root."""
    return _PATH.fullmatch(path) is not None


def to_openai(status: int, problem: Problem, error: Exception | None = None) -> ErrorAnswer:
    """In OpenAI's envelope; its clients try again where they are told that it can help."""
    if status == HTTPStatus.UNPROCESSABLE_ENTITY and problem.kind == "input":
        status = HTTPStatus.BAD_REQUEST
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    chat_problem = ChatProblem(
        message=problem.message, type=kind, param=_param(error), code=problem.kind
    )
    headers = {"x-should-retry": "true" if problem.retryable else "false"}
    return ErrorAnswer(status, headers, ChatFailure(error=chat_problem))


def _param(error: Exception | None) -> str | None:
    """The field that is wrong, where it is one."""
    match error:
        case WrongField(param=param):
            return param
        case RequestValidationError():
            first = error.errors()[0]
            if first["type"] == "json_invalid":
                return None
            kind, *location = first["loc"]
            # Behind a header's name stands which of its forms it was read as.
            return ".".join(map(str, location if kind == "body" else location[:1])) or None
    return None
