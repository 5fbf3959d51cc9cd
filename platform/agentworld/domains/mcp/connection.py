"""The connection to one server of an episode, through the client of the `mcp` package.

A server's answer is an observation. If the server hangs, dies, sends too much or breaks the
protocol, the connection raises EnvironmentBroken; that is never an observation.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Literal, TypeVar

from mcp import Client, MCPError
from mcp_types import EmptyResult, Request
from pydantic import BaseModel, JsonValue, ValidationError

from agentworld.domains.mcp.http_transport import HttpState, http_streams
from agentworld.domains.mcp.observation import refusal, result_text
from agentworld.domains.mcp.transport import (
    PipeState,
    ServerProcess,
    Streams,
    TransportState,
    pipe_streams,
)
from agentworld.errors import AgentworldError, EnvironmentBroken
from agentworld.records.base import JsonObject
from agentworld.records.tool import Tool, Tools
from agentworld.rendering.tools import read_tool

_MOST_PAGES = 100
_SECONDS_TO_START = 30.0

_Answer = TypeVar("_Answer")

ResourceList = Literal["resources", "resourceTemplates"]
"""What MCP lists beside tools."""


class RequestRefused(Exception):
    """A server refused a request; the text is its observation."""


class ServerConnection:
    """A connected server; `connect` makes it."""

    def __init__(
        self, name: str, client: Client, tools: Tools, state: TransportState, seconds: float
    ) -> None:
        self.name = name
        self.tools = tools
        self._client = client
        self._state = state
        self._seconds = seconds
        self._output_schemas = {tool.name: tool.output_schema for tool in tools}

    async def has_resources(self) -> bool:
        """Whether the server lists any resource or template."""
        if self._client.server_capabilities.resources is None:
            return False
        try:
            resources, _ = await self.list_resources("resources")
            return bool(resources or (await self.list_resources("resourceTemplates"))[0])
        except RequestRefused:
            return False

    @property
    def has_ended(self) -> bool:
        """Whether the server, or the connection to it, has ended."""
        return self._state.has_ended

    async def list_tools(self) -> Tools:
        """The tools that the server has now; raises EnvironmentBroken if it does not list them."""
        return await self._need(self._answer(_listed_tools(self._client)), "did not list its tools")

    async def call(self, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        """The observation of a call; raises EnvironmentBroken if the server gives none."""
        try:
            result = await self._answer(self._client.call_tool(tool, dict(arguments)))
        except RequestRefused as error:
            return str(error)
        return result_text(
            [_fields(block) for block in result.content],
            structured=result.structured_content,
            output_schema=self._output_schemas.get(tool),
            is_error=result.is_error,
        )

    async def list_resources(
        self, kind: ResourceList, cursor: str | None = None
    ) -> tuple[list[JsonObject], str | None]:
        """A page of the server's resources or templates, and the cursor of the next page.

        Raises RequestRefused, and EnvironmentBroken if the server gives no answer.
        """
        if kind == "resources":
            page = await self._answer(self._client.list_resources(cursor=cursor))
            return list(map(_fields, page.resources)), page.next_cursor
        templates = await self._answer(self._client.list_resource_templates(cursor=cursor))
        return list(map(_fields, templates.resource_templates)), templates.next_cursor

    async def read_resource(self, uri: str) -> list[JsonObject]:
        """The parts of a resource; raises as `list_resources` does."""
        result = await self._answer(self._client.read_resource(uri))
        return list(map(_fields, result.contents))

    async def read_text(self, uri: str) -> str:
        """The text of a resource; raises EnvironmentBroken if the server does not return it."""
        parts = await self._need(self.read_resource(uri), f"did not show its resource {uri}")
        return "\n".join(str(part["text"]) for part in parts if "text" in part)

    async def send(self, method: str, params: Mapping[str, JsonValue]) -> None:
        """Sends a request of the server's own that no tool makes; raises EnvironmentBroken."""
        request = Request[dict[str, Any], str](method=method, params=dict(params))
        answer = self._client.session.send_request(request, EmptyResult)
        await self._need(self._answer(answer), f"refused {method}")

    async def _need(self, answer: Awaitable[_Answer], problem: str) -> _Answer:
        try:
            return await answer
        except RequestRefused as error:
            raise self._broken(f"{problem}: {error}") from error

    async def _answer(self, answer: Awaitable[_Answer]) -> _Answer:
        try:
            async with asyncio.timeout(self._seconds):
                return await answer
        except MCPError as error:
            if self._state.is_fault(error.code):
                raise self._broken("ended during a call") from error
            raise RequestRefused(refusal(error.code, error.message)) from error
        except TimeoutError as error:
            raise self._broken(f"did not answer a call in {self._seconds:g} s") from error
        except (RuntimeError, ValidationError) as error:
            raise self._broken(f"answered a call against the protocol: {error!s:.200}") from error

    def _broken(self, problem: str) -> EnvironmentBroken:
        return EnvironmentBroken(
            f"the MCP server {self.name} {problem}; the episode is over{self._state.detail()}"
        )


Connect = Callable[[], AbstractAsyncContextManager[ServerConnection]]
"""Connects to a server; one asyncio task must open and close the connection."""


@asynccontextmanager
async def connect(
    name: str,
    streams: AbstractAsyncContextManager[Streams],
    state: TransportState,
    seconds: float,
) -> AsyncIterator[ServerConnection]:
    """Connects to a server while the block runs; one asyncio task must open and close it.

    Raises EnvironmentBroken if the server does not answer. `seconds` is the limit of each call.
    """
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(_SECONDS_TO_START):
                client = await stack.enter_async_context(Client(streams, cache=None))
                tools = await _listed_tools(client)
        except Exception as error:
            raise EnvironmentBroken(_start_failure(name, error, state.detail())) from error
        yield ServerConnection(name, client, tools, state, seconds)


@asynccontextmanager
async def connect_process(
    name: str, start: Callable[[], ServerProcess], seconds: float
) -> AsyncIterator[ServerConnection]:
    """Starts a process and connects to it, while the block runs; see `connect`."""
    try:
        process = start()
    except AgentworldError:
        raise
    except Exception as error:
        raise EnvironmentBroken(_start_failure(name, error)) from error
    state = PipeState(process)
    try:
        async with connect(name, pipe_streams(process, state), state, seconds) as connection:
            yield connection
    finally:
        process.close()


def connect_address(
    name: str, url: str, headers: Mapping[str, str], seconds: float
) -> AbstractAsyncContextManager[ServerConnection]:
    """Connects to the server at an address; see `connect`."""
    state = HttpState()
    return connect(name, http_streams(url, headers, state), state, seconds)


def _start_failure(name: str, error: BaseException, detail: str = "") -> str:
    """Why a server did not start, in one sentence."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    reason = "it took too long" if isinstance(error, TimeoutError) else f"{error!s:.200}"
    return f"the MCP server {name} did not start: {reason or type(error).__name__}{detail}"


async def _listed_tools(client: Client) -> Tools:
    """The tools of all pages of the server's list."""
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += [read_tool(_fields(tool)) for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return _distinct(tools)
    raise RuntimeError(f"its list of tools has more than {_MOST_PAGES} pages")


def _fields(model: BaseModel) -> JsonObject:
    """In MCP's JSON."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _distinct(tools: Sequence[Tool]) -> Tools:
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        raise RuntimeError("it lists two tools of one name")
    return tuple(tools)
