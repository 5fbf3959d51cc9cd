"""A connected server that stays connected from one call to the next."""

import asyncio

from agentworld.domains.mcp.connection import Connect, ServerConnection


class RunningServer:
    """One asyncio task opens and closes the connection, as anyio requires."""

    def __init__(self) -> None:
        self._connection: asyncio.Future[ServerConnection]
        self._connection = asyncio.get_running_loop().create_future()
        self._shall_end = asyncio.Event()
        self._task: asyncio.Task[None]

    @classmethod
    async def start(cls, connect: Connect) -> "RunningServer":
        """Starts a server; raises what `connect` raises."""
        server = cls()
        server._task = asyncio.create_task(server._live(connect))
        try:
            await asyncio.shield(server._connection)
        except BaseException:
            server._task.cancel()  # else a server that connects just before a cancellation stays
            await asyncio.wait([server._task])
            raise
        return server

    @property
    def connection(self) -> ServerConnection:
        """The connection to it."""
        return self._connection.result()

    @property
    def has_ended(self) -> bool:
        """Whether no call can reach it."""
        return self._task.done() or self.connection.has_ended

    async def close(self) -> None:
        """Ends it; it has ended already where its event loop has."""
        if not self._task.done():
            self._shall_end.set()
            await asyncio.wait([self._task])

    async def _live(self, connect: Connect) -> None:
        try:
            async with connect() as connection:
                self._connection.set_result(connection)
                await self._shall_end.wait()
        except Exception as error:  # noqa: BLE001 - the first caller gets it
            if not self._connection.done():  # else it broke later, as `has_ended` says
                self._connection.set_exception(error)
