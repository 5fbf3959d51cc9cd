"""The servers of one episode, in which each tool has a unique name."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from agentworld.domains.base import Call
from agentworld.domains.mcp.connection import ServerConnection
from agentworld.domains.mcp.observation import INVALID_PARAMETERS, refusal
from agentworld.domains.mcp.resources import ResourceTools
from agentworld.records.tool import Tool, Tools


class _Route(NamedTuple):
    """Where a call of a tool goes."""

    connection: ServerConnection
    tool: str
    """The tool's name on its server."""


class EpisodeServers:
    """Routes calls to servers. A name that several servers have gets the server's name before."""

    def __init__(
        self, connections: Mapping[str, ServerConnection], resources: ResourceTools
    ) -> None:
        """`resources` are tools beside those of the servers."""
        self._connections = connections
        self._resources = resources
        self._routes: dict[str, _Route] = {}
        counts = Counter(
            tool.name
            for tools in (
                *(connection.tools for connection in connections.values()),
                resources.tools,
            )
            for tool in tools
        )
        all_tools: list[Tool] = []
        for server, connection in connections.items():
            for tool in connection.tools:
                name = tool.name if counts[tool.name] == 1 else f"{server}__{tool.name}"
                self._routes[name] = _Route(connection, tool.name)
                all_tools.append(tool.model_copy(update={"name": name}))
        self.tools: Tools = (*all_tools, *resources.tools)

    async def call(self, call: Call) -> str:
        """The observation of a call; raises EnvironmentBroken if its server fails."""
        if any(tool.name == call.name for tool in self._resources.tools):
            return await self._resources.call(call)
        route = self._routes.get(call.name)
        if route is None and len(self._connections) == 1:  # the server words the refusal
            (connection,) = self._connections.values()
            route = _Route(connection, call.name)
        if route is None:
            return refusal(INVALID_PARAMETERS, f"Unknown tool: {call.name}")
        return await route.connection.call(route.tool, call.arguments)
