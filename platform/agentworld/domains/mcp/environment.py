"""Live MCP servers as an environment; each episode starts new processes.

The caller passes the function that starts a process, so this module does not import the sandbox.
"""

from collections.abc import Callable, Mapping, Sequence

from agentworld.domains.base import ActionError, Start
from agentworld.domains.calls import parse_calls, render_calls
from agentworld.domains.live import Observation
from agentworld.domains.mcp.observation import malformed_refusal
from agentworld.domains.mcp.servers import EpisodeServers, StartProcess
from agentworld.domains.state_fields import Fields, fields_of_objects
from agentworld.errors import EnvironmentBroken
from agentworld.records.task import Task
from agentworld.records.tool import Tools


class McpEnvironment:
    """See `Environment`."""

    def __init__(
        self,
        commands_of: Callable[[Task], Mapping[str, Sequence[str]]],
        start_process: StartProcess,
        *,
        domain: str,
        own_tools: Tools = (),
        state_uri: str = "",
        seconds: float = 5.0,
    ) -> None:
        """`commands_of` returns the command lines of a task's servers, by name.

        `own_tools` are the domain's own tools, which a start does not name. `state_uri` is the
        resource of the first server that holds the state; without it the state is unknown.
        """
        self.num_steps = 0
        self._commands_of = commands_of
        self._start_process = start_process
        self._domain = domain
        self._own_tools = own_tools
        self._state_uri = state_uri
        self._seconds = seconds
        self._servers: EpisodeServers | None = None

    async def reset(self, task: Task) -> Start:
        """Ends the servers of the episode before, and starts the task's servers."""
        await self.aclose()
        self._servers = await EpisodeServers.start(
            self._commands_of(task), self._start_process, self._seconds
        )
        tools = self._servers.tools
        return Start(
            domain=self._domain,
            text=await self.state(),
            tools=() if tools == self._own_tools else tools,
        )

    async def step(self, action: str) -> Observation:
        """Calls tools, one after the other; an action that is not a call gets an error of MCP."""
        self.num_steps += 1
        calls = parse_calls(action)
        if not calls or not _is_sendable(action):
            return Observation(malformed_refusal(action))
        servers = self._current()
        try:
            return Observation("\n".join([await servers.call(call) for call in calls]))
        except EnvironmentBroken:
            await self.aclose()
            raise

    async def state(self) -> str:
        """The text of the resource that holds the state; empty if the servers have none."""
        return await self._current().read(self._state_uri) if self._state_uri else ""

    async def fields(self) -> Fields | None:
        """The fields of the objects in the state; null if the servers have no state to read."""
        return fields_of_objects(await self.state()) if self._state_uri else None

    async def check(self, task: Task) -> bool | None:
        """Whether the state is the one that the task asks for; null if either is unknown."""
        if not (self._state_uri and task.success.state):
            return None
        return await self.state() == task.success.state

    async def aclose(self) -> None:
        """Ends the servers and the episode."""
        if self._servers:
            servers, self._servers = self._servers, None
            await servers.close()

    def _current(self) -> EpisodeServers:
        if self._servers is None:
            raise EnvironmentBroken("no episode is open with these servers; reset begins one")
        return self._servers


def _is_sendable(action: str) -> bool:
    """Whether its calls can be sent as JSON: no NaN, no lone surrogate."""
    try:
        render_calls(parse_calls(action)).encode()
    except (ActionError, UnicodeEncodeError):
        return False
    return True
