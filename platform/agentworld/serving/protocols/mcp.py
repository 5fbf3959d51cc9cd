"""MCP: serves the tools of an episode. A call is a step, and is durable when it is answered.

It is stateless, so any replica can answer any request: the address names the episode. A result is
always a recorded observation. A failure is an error of the protocol and never a tool's result.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from mcp.types import Tool as McpTool
from pydantic import JsonValue, ValidationError
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agentworld.domains.structured import structured_content
from agentworld.errors import AgentworldError, InputError
from agentworld.http.errors import answer_of, count
from agentworld.http.schemas import Request
from agentworld.records.base import Digest, JsonObject
from agentworld.records.episode import StepResult
from agentworld.rendering.tools import tool_fields
from agentworld.serving.authorized_service import AuthorizedService
from agentworld.serving.protocols.base import Protocol
from agentworld.serving.protocols.json_rpc import error_of, refusal

_MOST_BYTES = 4 * 2**20
_NO_UNICODE = re.compile("[\ud800-\udfff]")

_Context = ServerRequestContext[Any, HttpRequest]

_log = logging.getLogger(__name__)


class ToolsEndpoint:
    """The endpoint of all episodes; it answers while its `lifespan` runs."""

    def __init__(self) -> None:
        self._managers: dict[Digest, StreamableHTTPSessionManager] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.route = Route("/episodes/{episode}/mcp", self, methods=["POST"])

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Runs the endpoint; can be entered once."""
        async with asyncio.TaskGroup() as self._task_group:
            yield
            for task in self._tasks:
                task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            episode = await _authorize(scope).load_open(_episode(scope))
        except AgentworldError as error:
            count(scope, error)
            await _refuse(error)(scope, receive, send)
            return
        manager = await self._manager(episode.simulator)
        await manager.handle_request(scope, receive, send)

    async def _manager(self, simulator: Digest) -> StreamableHTTPSessionManager:
        """The manager of a simulator's server: a server states its version, so each has its own."""
        if simulator not in self._managers:
            manager, is_ready = _new_manager(simulator), asyncio.Event()
            self._tasks.append(self._task_group.create_task(_run(manager, is_ready)))
            await is_ready.wait()
            self._managers.setdefault(simulator, manager)  # a concurrent request may be faster
        return self._managers[simulator]


def _new_manager(simulator: Digest) -> StreamableHTTPSessionManager:
    server = Server(
        "agentworld simulator", version=simulator, on_list_tools=_list, on_call_tool=_call
    )
    # The package's own spans would quote what an agent said.
    server.middleware = [_translate_errors]
    # AuthMiddleware decides who may ask from where, so the package checks no address.
    return StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=_MOST_BYTES
    )


async def _run(manager: StreamableHTTPSessionManager, is_ready: asyncio.Event) -> None:
    """Runs a manager until the task is cancelled."""
    async with manager.run():
        is_ready.set()
        await asyncio.Event().wait()


async def _list(ctx: _Context, params: PaginatedRequestParams | None) -> ListToolsResult:  # noqa: ARG001  one page
    scope = _scope(ctx)
    return ListToolsResult(
        tools=[
            McpTool.model_validate({"description": "", **tool_fields(tool)})
            for tool in (await _authorize(scope).toolbox(_episode(scope))).tools
        ]
    )


async def _call(ctx: _Context, params: CallToolRequestParams) -> CallToolResult:
    scope = _scope(ctx)
    authorized, episode = _authorize(scope), _episode(scope)
    toolbox = await authorized.toolbox(episode)
    authorized.check_allowed()  # checking the arguments costs time before the step is counted
    action = await asyncio.to_thread(toolbox.action_of, params.name, params.arguments or {})
    result = await authorized.step(episode, Request(_number(params), action))
    return await asyncio.to_thread(_to_tool_result, result, toolbox.output_schema_of(params.name))


def _number(params: CallToolRequestParams) -> int | None:
    """The number of the step, which the caller may give to retry safely; null for the next step."""
    match params.meta:
        case {"agentworld": {"step": number}} if type(number) is int:
            return number
        case {"agentworld": value}:
            raise InputError(
                f"a call's _meta says {{'step': number}} or nothing, not {value!r:.80}"
            )
    return None


async def _translate_errors(ctx: _Context, call_next: CallNext) -> HandlerResult:
    """Middleware of every request: turns our errors into errors of the protocol."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):  # the package's own words
        raise
    except Exception as error:  # else the package would send the error's text to the client
        if not isinstance(error, AgentworldError):
            _log.exception("an MCP request failed with an internal error")
        count(_scope(ctx), error)
        raise MCPError(*error_of(error)) from error


def _to_tool_result(result: StepResult, output_schema: JsonObject | None) -> CallToolResult:
    """The result of a step; lone surrogates are replaced, because clients cannot read them.

    A client refuses a result without the structured content that the tool's schema requires, unless
    it is an error. So an observation without that content is sent as an error of the tool.
    """
    fields = result._asdict()
    text, num_replaced = _NO_UNICODE.subn("\ufffd", fields.pop("observation"))
    answer: dict[str, JsonValue] = {}
    if output_schema is not None:
        try:
            answer["structured_content"] = structured_content(text, output_schema)
        except InputError:
            answer["is_error"] = True
    return CallToolResult.model_validate(
        {
            "content": [TextContent(text=text)],
            "_meta": {"agentworld": {**fields, "exact": not num_replaced}},
            **answer,
        }
    )


def _refuse(error: AgentworldError) -> Response:
    """The response to a request that was refused before it was read; it has the HTTP status too."""
    status, headers, _ = answer_of(error)
    return Response(json.dumps(refusal(error_of(error))), status, headers)


def _scope(ctx: _Context) -> Scope:
    if ctx.request is None:
        raise ValueError("the transport passed no request")
    return ctx.request.scope


def _authorize(scope: Scope) -> AuthorizedService:
    return AuthorizedService(scope, "mcp")


def _episode(scope: Scope) -> str:
    return str(scope["path_params"]["episode"])


def open_protocol(_app: FastAPI) -> Protocol:
    """The Model Context Protocol: an episode's tools."""
    endpoint = ToolsEndpoint()
    return Protocol([endpoint.route], endpoint.lifespan)
