"""MCP: an episode's tools as a server of them. A call is a step, durable when answered.

Stateless, so that any replica answers any request: its address says which episode, and nothing is
kept between two requests. What is no observation is an error of the protocol and never a tool's
result: whatever an agent reads as one is in the record.
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
    """Takes requests while its `lifespan` lasts."""

    def __init__(self) -> None:
        self._managers: dict[Digest, StreamableHTTPSessionManager] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.route = Route("/episodes/{episode}/mcp", self, methods=["POST"])

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Once in its life."""
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
        """A server has one name for good: each simulator has one of its own."""
        if simulator not in self._managers:
            manager, is_ready = _new_manager(simulator), asyncio.Event()
            self._tasks.append(self._task_group.create_task(_run(manager, is_ready)))
            await is_ready.wait()
            self._managers.setdefault(simulator, manager)  # somebody else may have been faster
        return self._managers[simulator]


def _new_manager(simulator: Digest) -> StreamableHTTPSessionManager:
    server = Server(
        "agentworld simulator", version=simulator, on_list_tools=_list, on_call_tool=_call
    )
    # The package's own spans would quote what an agent said.
    server.middleware = [_translate_errors]
    # Who may ask from where is the gate's to say, so that no address is checked here.
    return StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=_MOST_BYTES
    )


async def _run(manager: StreamableHTTPSessionManager, is_ready: asyncio.Event) -> None:
    """Until it is cancelled."""
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
    authorized.check_allowed()  # a comparison costs, and is no step yet
    action = await asyncio.to_thread(toolbox.action_of, params.name, params.arguments or {})
    result = await authorized.step(episode, Request(_number(params), action))
    return await asyncio.to_thread(_to_tool_result, result, toolbox.output_schema_of(params.name))


def _number(params: CallToolRequestParams) -> int | None:
    """The step that the caller says it is, so that it is taken once; null is the next one."""
    match params.meta:
        case {"agentworld": {"step": number}} if type(number) is int:
            return number
        case {"agentworld": value}:
            raise InputError(
                f"a call's _meta says {{'step': number}} or nothing, not {value!r:.80}"
            )
    return None


async def _translate_errors(ctx: _Context, call_next: CallNext) -> HandlerResult:
    """Around every request: our errors as the protocol's."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):  # the package's own words
        raise
    except Exception as error:  # an edge: the package would tell the client what it says
        if not isinstance(error, AgentworldError):
            _log.exception("a request of MCP failed by our mistake")
        count(_scope(ctx), error)
        raise MCPError(*error_of(error)) from error


def _to_tool_result(result: StepResult, output_schema: JsonObject | None) -> CallToolResult:
    """The observation; what is no Unicode in it cannot be read by the protocol's clients.

    A client takes no result without the structured content that a tool promises, but an error. So
    an observation that holds none is one, as an error of the tool's is.
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
    """Before a request was read: by its status too."""
    status, headers, _ = answer_of(error)
    return Response(json.dumps(refusal(error_of(error))), status, headers)


def _scope(ctx: _Context) -> Scope:
    if ctx.request is None:
        raise ValueError("the transport handed over no request")
    return ctx.request.scope


def _authorize(scope: Scope) -> AuthorizedService:
    return AuthorizedService(scope, "mcp")


def _episode(scope: Scope) -> str:
    return str(scope["path_params"]["episode"])


def open_protocol(_app: FastAPI) -> Protocol:
    """The Model Context Protocol: an episode's tools."""
    endpoint = ToolsEndpoint()
    return Protocol([endpoint.route], endpoint.lifespan)
