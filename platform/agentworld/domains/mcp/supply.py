"""Servers that are equal to fresh ones, one for each episode.

A process whose state can be reset is reset in place, as long as its snapshot equals that of a fresh
process. Without such a reset, the next process is started while an episode runs.
"""

import asyncio
import logging
from typing import Protocol

from agentworld.domains.mcp.comparison import is_same
from agentworld.domains.mcp.connection import Connect, ServerConnection
from agentworld.domains.mcp.reset import StateAccess, reset_in_place
from agentworld.domains.mcp.reset_check import check_reset
from agentworld.domains.mcp.running import RunningServer
from agentworld.errors import EnvironmentBroken

_MOST_EPISODES = 100
"""The limits of a process, such as its processor time, are for a number of episodes."""

_log = logging.getLogger(__name__)


class Supply(Protocol):
    """Where the episodes' servers come from."""

    async def next_server(self) -> ServerConnection:
        """A server for an episode, after the end of the episode before.

        Raises EnvironmentBroken if no server is equal to a fresh one.
        """

    async def drop(self) -> None:
        """Ends the server of the current episode; no other episode meets it."""

    async def close(self) -> None:
        """Ends all servers."""


class ProcessSupply:
    """Servers that are processes; see `Supply`."""

    def __init__(self, name: str, connect: Connect, access: StateAccess | None = None) -> None:
        """`connect` starts a process. `access` without a reset has no effect here."""
        self._name = name
        self._connect = connect
        self._access = access if access and access.reset else None
        self._snapshot: str | None = None
        """That of a fresh server; null before the reset was checked."""
        self._server: RunningServer | None = None
        self._spare: asyncio.Task[RunningServer] | None = None
        self._num_episodes = 0
        self._num_resets = 0

    async def next_server(self) -> ServerConnection:
        """See `Supply`. The first episode gets a new process, because there may be no second."""
        self._num_episodes += 1
        if not await self._reset():
            await self.drop()
            self._server = await self._fresh_server()
            if self._num_episodes > 1:
                await self._prepare_next()
        return self._current().connection

    async def drop(self) -> None:
        """See `Supply`."""
        server, self._server = self._server, None
        if server:
            await server.close()

    async def close(self) -> None:
        """See `Supply`."""
        await self.drop()
        spare, self._spare = self._spare, None
        if spare is None:
            return
        if not spare.done():
            spare.cancel()
            await asyncio.wait([spare])
        if not spare.cancelled() and spare.exception() is None:
            await spare.result().close()

    async def _reset(self) -> bool:
        """Whether the server of the episode before is equal to a fresh one now."""
        if self._server is None or self._access is None or self._snapshot is None:
            return False
        if self._num_resets >= _MOST_EPISODES:
            return False
        self._num_resets += 1
        try:
            snapshot = await reset_in_place(self._server.connection, self._access)
            is_fresh = is_same(snapshot, self._snapshot)
            reason = "" if is_fresh else "its state after the reset is not that of a fresh server"
        except EnvironmentBroken as error:
            reason = str(error)
        if reason:
            self._refuse_reset(reason)
        return not reason

    async def _fresh_server(self) -> RunningServer:
        self._num_resets = 0
        spare, self._spare = self._spare, None
        if spare:
            server = await spare
            if not server.has_ended:
                return server
            await server.close()
        return await RunningServer.start(self._connect)

    async def _prepare_next(self) -> None:
        """Checks the reset, once; without a reset, starts a spare process."""
        if self._access and self._snapshot is None:
            try:
                self._snapshot = await check_reset(self._current().connection, self._access)
            except EnvironmentBroken as error:
                self._refuse_reset(str(error))
                await self.drop()
                self._server = await self._fresh_server()
        if self._access is None:
            self._spare = asyncio.create_task(RunningServer.start(self._connect))

    def _refuse_reset(self, reason: str) -> None:
        self._access = None
        _log.warning(
            "the MCP server %s gets a new process for each episode: %s", self._name, reason
        )

    def _current(self) -> RunningServer:
        if self._server is None:
            raise EnvironmentBroken(
                f"the MCP server {self._name} has ended; reset starts a new one"
            )
        return self._server


class AddressSupply:
    """A server at an address, which this machine does not start; see `Supply`.

    Each episode has a new session. No fresh server is known, so later snapshots are compared with
    that of the first episode.
    """

    def __init__(self, name: str, connect: Connect, access: StateAccess) -> None:
        self._name = name
        self._connect = connect
        self._access = access
        self._snapshot: str | None = None
        self._server: RunningServer | None = None

    async def next_server(self) -> ServerConnection:
        """See `Supply`."""
        await self.drop()
        self._server = await RunningServer.start(self._connect)
        connection = self._server.connection
        snapshot = await reset_in_place(connection, self._access)
        if self._snapshot is not None and not is_same(snapshot, self._snapshot):
            raise EnvironmentBroken(
                f"the MCP server {self._name} has another state after its reset than before the"
                " first episode; correct its `reset`"
            )
        self._snapshot = snapshot
        return connection

    async def drop(self) -> None:
        """See `Supply`."""
        server, self._server = self._server, None
        if server:
            await server.close()

    async def close(self) -> None:
        """See `Supply`."""
        await self.drop()
