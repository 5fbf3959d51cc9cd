"""The connection to one server of an episode, through the client of the `mcp` package.

A server's answer is an observation. If the server hangs, dies, sends too much or breaks the
protocol, the connection raises EnvironmentBroken; that is never an observation.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from mcp import Client, MCPError
from mcp_types import TextResourceContents
from pydantic import JsonValue, ValidationError

from agentworld.domains.mcp.observation import refusal, result_text
from agentworld.domains.mcp.transport import ServerProcess, pipe_streams
from agentworld.errors import EnvironmentBroken
from agentworld.records.tool import Tool, Tools
from agentworld.rendering.tools import read_tool

_MOST_PAGES = 100


class ServerConnection:
    """A connected server; `connect` makes it."""

    def __init__(
        self,
        name: str,
        client: Client,
        tools: Tools,
        process: ServerProcess,
        ended: asyncio.Event,
        seconds: float,
    ) -> None:
        self.tools = tools
        self._name = name
        self._client = client
        self._process = process
        self._ended = ended
        self._seconds = seconds
        self._output_schemas = {tool.name: tool.output_schema for tool in tools}

    async def call(self, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        """The observation of a call; raises EnvironmentBroken if the server gives none."""
        try:
            async with asyncio.timeout(self._seconds):
                result = await self._client.call_tool(tool, dict(arguments))
        except MCPError as error:
            if self._ended.is_set():
                raise self._broken("ended during a call") from error
            return refusal(error.code, error.message)
        except TimeoutError as error:
            raise self._broken(f"did not answer a call in {self._seconds:g} s") from error
        except (RuntimeError, ValidationError) as error:
            raise self._broken(f"answered a call against the protocol: {error!s:.200}") from error
        fields = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return result_text(
            fields["content"],
            structured=result.structured_content,
            output_schema=self._output_schemas.get(tool),
            is_error=result.is_error,
        )

    async def read(self, uri: str) -> str:
        """The text of a resource; raises EnvironmentBroken if the server does not return it."""
        try:
            async with asyncio.timeout(self._seconds):
                result = await self._client.read_resource(uri)
        except (MCPError, TimeoutError, RuntimeError, ValidationError) as error:
            raise self._broken(f"did not show its resource {uri}: {error!s:.200}") from error
        texts = [part.text for part in result.contents if isinstance(part, TextResourceContents)]
        return "\n".join(texts)

    def _broken(self, problem: str) -> EnvironmentBroken:
        return EnvironmentBroken(
            f"the MCP server {self._name} {problem}; the episode is over{_quote(self._process)}"
        )


@asynccontextmanager
async def connect(
    name: str, process: ServerProcess, seconds: float
) -> AsyncIterator[ServerConnection]:
    """Connects to a server while the block runs; one asyncio task must open and close it.

    Raises the package's errors if the server does not start. `seconds` is the limit of each call.
    """
    ended = asyncio.Event()
    async with Client(pipe_streams(process, ended), cache=None) as client:
        tools = await _listed_tools(client)
        yield ServerConnection(name, client, tools, process, ended, seconds)


def start_failure(name: str, process: ServerProcess | None, error: BaseException) -> str:
    """Why a server did not start, in one sentence."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    reason = "it took too long" if isinstance(error, TimeoutError) else f"{error!s:.200}"
    return f"the MCP server {name} did not start: {reason or type(error).__name__}" + (
        _quote(process) if process else ""
    )


async def _listed_tools(client: Client) -> Tools:
    """The tools of all pages of the server's list."""
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += [
            read_tool(tool.model_dump(mode="json", by_alias=True, exclude_none=True))
            for tool in page.tools
        ]
        cursor = page.next_cursor
        if cursor is None:
            break
    return tuple(tools)


def _quote(process: ServerProcess) -> str:
    tail = process.error_tail()
    return f"; its error output ends with {tail!r}" if tail else ""
