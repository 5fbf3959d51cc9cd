"""The servers of one episode. They start and end together, and each tool has a unique name."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple

from agentworld.domains.base import Call
from agentworld.domains.mcp.connection import ServerConnection, connect, start_failure
from agentworld.domains.mcp.observation import INVALID_PARAMETERS, refusal
from agentworld.domains.mcp.transport import ServerProcess
from agentworld.errors import AgentworldError, EnvironmentBroken
from agentworld.records.tool import Tools

_SECONDS_TO_START = 30.0

StartProcess = Callable[[str, Sequence[str]], ServerProcess]
"""Starts a server, given its name and its command line."""


class _Route(NamedTuple):
    """Where a call of a tool goes."""

    connection: ServerConnection
    tool: str
    """The tool's name on its server."""


class EpisodeServers:
    """Running servers. One asyncio task opens and closes their clients, as anyio requires."""

    def __init__(self) -> None:
        self.tools: Tools = ()
        self._routes: dict[str, _Route] = {}
        self._connections: dict[str, ServerConnection] = {}
        self._has_started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._shall_end = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, commands: Mapping[str, Sequence[str]], start_process: StartProcess, seconds: float
    ) -> "EpisodeServers":
        """Starts a fresh process for each command; raises EnvironmentBroken where one fails."""
        servers = cls()
        servers._task = asyncio.create_task(servers._live(commands, start_process, seconds))
        try:
            await asyncio.shield(servers._has_started)
        except BaseException:
            if not servers._has_started.done():  # this coroutine was cancelled
                servers._task.cancel()
            await asyncio.wait([servers._task])
            raise
        servers._route_tools()
        return servers

    async def call(self, call: Call) -> str:
        """The observation of a call; raises EnvironmentBroken if its server fails."""
        route = self._routes.get(call.name)
        if route is None and len(self._connections) == 1:  # the server words the refusal
            (connection,) = self._connections.values()
            route = _Route(connection, call.name)
        if route is None:
            return refusal(INVALID_PARAMETERS, f"Unknown tool: {call.name}")
        return await route.connection.call(route.tool, call.arguments)

    async def read(self, uri: str) -> str:
        """The text of a resource of the first server."""
        first, *_ = self._connections.values()
        return await first.read(uri)

    async def close(self) -> None:
        """Ends the servers; they have ended already where their event loop has."""
        if self._task and not self._task.done():
            self._shall_end.set()
            await self._task

    async def _live(
        self, commands: Mapping[str, Sequence[str]], start_process: StartProcess, seconds: float
    ) -> None:
        async with AsyncExitStack() as stack:
            try:
                for name, command in commands.items():
                    connection = await _start(stack, name, command, start_process, seconds)
                    self._connections[name] = connection
            except AgentworldError as error:
                self._has_started.set_exception(error)
                return
            self._has_started.set_result(None)
            await self._shall_end.wait()

    def _route_tools(self) -> None:
        """Names the tools; a name that several servers have gets the server's name before it."""
        counts = Counter(
            tool.name for connection in self._connections.values() for tool in connection.tools
        )
        tools = []
        for server, connection in self._connections.items():
            for tool in connection.tools:
                name = tool.name if counts[tool.name] == 1 else f"{server}__{tool.name}"
                self._routes[name] = _Route(connection, tool.name)
                tools.append(tool.model_copy(update={"name": name}))
        self.tools = tuple(tools)


async def _start(
    stack: AsyncExitStack,
    name: str,
    command: Sequence[str],
    start_process: StartProcess,
    seconds: float,
) -> ServerConnection:
    process = None
    try:
        process = start_process(name, command)
        stack.callback(process.close)
        async with asyncio.timeout(_SECONDS_TO_START):
            return await stack.enter_async_context(connect(name, process, seconds))
    except AgentworldError:
        raise
    except Exception as error:
        raise EnvironmentBroken(start_failure(name, process, error)) from error
