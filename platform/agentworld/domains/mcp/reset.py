"""Brings a server back to its start without a new process, and shows its state."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from agentworld.domains.base import Call
from agentworld.domains.mcp.connection import ServerConnection
from agentworld.domains.mcp.observation import is_failure
from agentworld.errors import EnvironmentBroken


class StateAccess(NamedTuple):
    """How the state of a server is read and reset, which is not a step of an episode."""

    read: Callable[[ServerConnection], Awaitable[str]]
    reset: Callable[[ServerConnection], Awaitable[None]] | None = None
    """Restores the state of a fresh server; null if only a new process has that state."""


def access_by_calls(state: Sequence[Call], reset: Sequence[Call] | None) -> StateAccess:
    """Access by a server's own tools: the state is what the calls of `state` show."""

    async def read_state(connection: ServerConnection) -> str:
        return "\n".join([await connection.call(*call) for call in state])

    async def reset_state(connection: ServerConnection) -> None:
        for call in reset or ():
            observation = await connection.call(*call)
            if is_failure(observation):
                raise EnvironmentBroken(
                    f"the reset's call of {call.name} shows {observation!r:.80}"
                )

    return StateAccess(read_state, None if reset is None else reset_state)


async def reset_in_place(connection: ServerConnection, access: StateAccess) -> str:
    """Resets a server and returns its snapshot, which shall equal that of a fresh server."""
    if access.reset is None:
        raise EnvironmentBroken(f"the MCP server {connection.name} has no reset; start a new one")
    await access.reset(connection)
    return await read_snapshot(connection, access)


async def read_snapshot(connection: ServerConnection, access: StateAccess) -> str:
    """The tools and the state of a server, to be compared by `is_same`."""
    tools = [tool.model_dump_json() for tool in await connection.list_tools()]
    return "\n".join([*tools, await access.read(connection)])
