"""Errors of JSON-RPC for the protocols MCP and OpenEnv."""

from typing import NamedTuple

from agentworld.errors import InputError
from agentworld.http.errors import problem_of

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class NoRequest(InputError):
    """A request with its own error code in JSON-RPC: not JSON, invalid, or an unknown method."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class RpcError(NamedTuple):
    """The fields of an error."""

    code: int
    message: str
    data: dict[str, object]


def error_of(error: Exception) -> RpcError:
    """The error of a failure; `data` has its kind, whether it is retryable, and when."""
    problem = problem_of(error)
    match error:
        case NoRequest(code=code):
            pass
        case InputError():
            code = INVALID_PARAMS
        case _:
            code = INTERNAL_ERROR
    return RpcError(code, problem.message, problem.model_dump())


def refusal(error: RpcError, id_: str | int | None = None) -> dict[str, object]:
    """The whole response to a request that failed."""
    return {"jsonrpc": "2.0", "id": id_, "error": error._asdict()}
