"""The tools of the OpenEnv protocol by JSON-RPC, over HTTP or a WebSocket; a call is a step.

OpenEnv's four methods create and close a session, list tools and call a tool. It is not an MCP
server; mcp.py serves MCP at an address of its own for each episode.
"""

import json
from contextlib import suppress
from typing import Literal, NamedTuple

from pydantic import ValidationError

from agentworld.errors import AgentworldError, InputError
from agentworld.http.schemas import Problem
from agentworld.records.base import Record, first_problem
from agentworld.records.episode import StepResult, new_name
from agentworld.records.tool import Tool
from agentworld.rendering.tools import tool_fields
from agentworld.serving.authorized_service import AuthorizedService
from agentworld.serving.protocols.json_rpc import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    NoRequest,
    error_of,
    refusal,
)
from agentworld.serving.protocols.openenv_chain import Chain
from agentworld.serving.protocols.openenv_session import Fields, OpenEnvSession, to_metadata

_decode = json.JSONDecoder().decode


class RpcProblem(Record):
    """An error of JSON-RPC."""

    code: int
    message: str
    data: Problem


class RpcRequest(Record):
    """A request of JSON-RPC 2.0."""

    jsonrpc: Literal["2.0"]
    method: str
    params: dict[str, object] = {}
    id: str | int | None = None


class RpcResponse(Record):
    """A response of JSON-RPC: a result or an error."""

    jsonrpc: Literal["2.0"]
    id: str | int | None
    result: dict[str, object] | None = None
    error: RpcProblem | None = None


class RpcAnswer(NamedTuple):
    """The response, and the failure that it reports."""

    response: Fields
    error: AgentworldError | None = None


async def respond(
    authorized: AuthorizedService,
    run: str,
    message: object,
    connection: OpenEnvSession | None = None,
) -> RpcAnswer:
    """Answers a request (text or JSON), in the connection's session or the one that it names."""
    id_ = None
    try:
        request = _read(message)
        id_ = request.id
        world = connection or _session(authorized, run, request)
        result = await _result(request, world, is_connected=connection is not None)
    except AgentworldError as error:
        return RpcAnswer(refusal(error_of(error), id_), error)
    return RpcAnswer({"jsonrpc": "2.0", "id": id_, "result": result})


async def _result(request: RpcRequest, world: OpenEnvSession, *, is_connected: bool) -> Fields:
    match request.method:
        case "openenv/session/create":
            return {"session_id": _create(world, is_connected=is_connected)}
        case "openenv/session/close":
            if is_connected or world.name is None:
                raise InputError("to close a session, name its session_id by HTTP")
            await world.close()
            return {"session_id": world.name, "closed": True}
        case "tools/list":
            return {"tools": [_to_tool(tool) for tool in await world.tools()]}
        case "tools/call":
            is_alone = not is_connected and world.name is None
            return _to_result(await _call(request.params, world, is_alone=is_alone))
    raise NoRequest(
        METHOD_NOT_FOUND,
        f"there is no method {request.method!r:.80}; there are tools/list, tools/call,"
        " openenv/session/create and openenv/session/close",
    )


def _create(world: OpenEnvSession, *, is_connected: bool) -> str:
    if is_connected and world.name is None:
        raise InputError(
            "this connection is a session already; to create another, use HTTP, and name it as"
            " session_id when you connect"
        )
    return world.name or new_name()


async def _call(params: Fields, world: OpenEnvSession, *, is_alone: bool) -> StepResult:
    """Calls a tool. A call that names no session is an episode with one step."""
    opening: Fields = {"turn_limit": 1} if is_alone else {}
    try:
        return await world.call(params.get("name"), params.get("arguments", {}), opening)
    except AgentworldError:
        if is_alone:  # no client could close it
            with suppress(AgentworldError):
                await world.close()
        raise


def _session(authorized: AuthorizedService, run: str, request: RpcRequest) -> OpenEnvSession:
    """The session that a request names."""
    name = request.params.get("session_id")
    return OpenEnvSession(authorized, run, None if name is None else Chain(authorized, run, name))


def _read(message: object) -> RpcRequest:
    try:
        fields = _decode(message) if isinstance(message, str) else message
    except (ValueError, RecursionError) as error:
        raise NoRequest(PARSE_ERROR, f"the request is not JSON: {error}") from error
    try:
        return RpcRequest.model_validate(fields)
    except ValidationError as error:
        raise NoRequest(INVALID_REQUEST, f"invalid request: {first_problem(error)}") from error


def _to_tool(tool: Tool) -> Fields:
    """A tool with MCP's names of fields; OpenEnv's client requires a description."""
    return {"description": "", **tool_fields(tool)}


def _to_result(result: StepResult) -> Fields:
    """A result in MCP's form, with the text also in `data`, where OpenEnv's client reads it."""
    content = [{"type": "text", "text": result.observation}]
    meta = {"agentworld": to_metadata(result)}
    return {"content": content, "data": result.observation, "isError": False, "_meta": meta}
