"""Live MCP servers as an environment; each episode meets servers that are equal to fresh ones.

The caller passes the supplies of servers, so this module does not import the sandbox.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from agentworld.domains.base import ActionError, Start
from agentworld.domains.calls import parse_calls, render_calls
from agentworld.domains.live import Observation
from agentworld.domains.mcp.comparison import is_same
from agentworld.domains.mcp.connection import ServerConnection
from agentworld.domains.mcp.observation import malformed_refusal
from agentworld.domains.mcp.reset import StateAccess
from agentworld.domains.mcp.resources import ResourceTools
from agentworld.domains.mcp.servers import EpisodeServers
from agentworld.domains.mcp.supply import Supply
from agentworld.domains.state_fields import Fields, fields_of_objects
from agentworld.errors import EnvironmentBroken
from agentworld.records.task import Task
from agentworld.records.tool import Tools


class Server(NamedTuple):
    """One server of every episode."""

    supply: Supply
    access: StateAccess | None = None
    """How its state is read; null if its state is unknown."""
    load: Callable[[ServerConnection, Task], Awaitable[None]] | None = None
    """Brings a fresh server into a task's start; null if all tasks start with a fresh server."""


class McpEnvironment:
    """See `Environment`."""

    def __init__(
        self,
        servers: Mapping[str, Server],
        *,
        domain: str,
        own_tools: Tools = (),
        check_task: Callable[[Task], None] = lambda _: None,
    ) -> None:
        """`own_tools` are the domain's own tools, which a start does not name.

        `check_task` raises InputError for a task that these servers do not have.
        """
        self.num_steps = 0
        self._servers = servers
        self._domain = domain
        self._own_tools = own_tools
        self._check_task = check_task
        self._connections: dict[str, ServerConnection] = {}
        self._episode: EpisodeServers | None = None

    async def reset(self, task: Task) -> Start:
        """Begins an episode with servers that no earlier episode has changed."""
        self._check_task(task)
        self._episode = None
        try:
            for name, server in self._servers.items():
                connection = await server.supply.next_server()
                self._connections[name] = connection
                if server.load:
                    await server.load(connection, task)
            resources = {
                name: connection
                for name, connection in self._connections.items()
                if await connection.has_resources()
            }
            self._episode = EpisodeServers(self._connections, ResourceTools(resources))
            text = await self.state()
        except EnvironmentBroken:
            await self._drop()
            raise
        tools = self._episode.tools
        return Start(
            domain=self._domain, text=text, tools=() if tools == self._own_tools else tools
        )

    async def step(self, action: str) -> Observation:
        """Calls tools, one after the other; an action that is not a call gets an error of MCP."""
        self.num_steps += 1
        calls = parse_calls(action)
        if not calls or not _is_sendable(action):
            return Observation(malformed_refusal(action))
        episode = self._current()
        try:
            return Observation("\n".join([await episode.call(call) for call in calls]))
        except EnvironmentBroken:
            await self._drop()
            raise

    async def state(self) -> str:
        """What all servers show as their state; empty if none shows it."""
        self._current()
        states = [
            await server.access.read(self._connections[name])
            for name, server in self._servers.items()
            if server.access
        ]
        return "\n".join(states)

    async def fields(self) -> Fields | None:
        """The fields of the objects in the state; null if the servers show no such state."""
        return fields_of_objects(await self.state()) if self._shows_state else None

    async def check(self, task: Task) -> bool | None:
        """Whether the state is the one that the task asks for; null if either is unknown."""
        if not task.success.state or not self._shows_state:
            return None
        return is_same(await self.state(), task.success.state)

    async def aclose(self) -> None:
        """Ends the servers and the episode."""
        self._episode = None
        for server in self._servers.values():
            await server.supply.close()

    async def _drop(self) -> None:
        """Ends the episode and its servers, but not those that wait for the next one."""
        self._episode = None
        for server in self._servers.values():
            await server.supply.drop()

    @property
    def _shows_state(self) -> bool:
        return any(server.access for server in self._servers.values())

    def _current(self) -> EpisodeServers:
        if self._episode is None:
            raise EnvironmentBroken("no episode is open with these servers; reset begins one")
        return self._episode


def _is_sendable(action: str) -> bool:
    """Whether its calls can be sent as JSON: no NaN, no lone surrogate."""
    try:
        render_calls(parse_calls(action)).encode()
    except (ActionError, UnicodeEncodeError):
        return False
    return True
