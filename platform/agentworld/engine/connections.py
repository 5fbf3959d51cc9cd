"""HTTP connections that outlive an event loop.

asyncio's objects cannot change loops, and a trainer opens several one after the other.
"""

import asyncio
from collections.abc import Mapping

import httpx

from agentworld.engine.http_client import open_async_client


class Connections:
    """Connections for whichever event loop asks, with a bound on the requests under way at once.

    Each is a client of its own: httpx looks through a whole pool for every request, which at
    64 connections takes longer than all the rest.
    """

    def __init__(
        self,
        url: str,
        *,
        concurrency: int,
        timeout_seconds: float,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = url
        self._concurrency = concurrency
        self._timeout_seconds = timeout_seconds
        self._transport = transport
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clients: set[httpx.AsyncClient] = set()
        self._idle: list[httpx.AsyncClient] = []

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Sends a value as JSON, or bytes that are JSON; raises what httpx raises, for the caller
        to translate.

        Its time begins with its turn and ends with the answer's last byte.
        """
        self._settle()
        content, value = (body, None) if isinstance(body, bytes) else (None, body)
        idle = self._idle
        async with self._turns:
            client = idle.pop() if idle else self._open()
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    response = await client.request(
                        method, path, content=content, json=value, headers=headers
                    )
            except BaseException as error:
                await self._discard(client)
                if isinstance(error, TimeoutError):
                    raise httpx.ReadTimeout(f"waited {self._timeout_seconds:g} s") from error
                # anyio (4.16) asks a new connection for its peer, and uvloop has no socket any
                # more where the server has closed it by then.
                if isinstance(error, AttributeError) and error.name == "getpeername":
                    raise httpx.ConnectError("closed by the server as it was opened") from error
                raise
            idle.append(client)
            return response

    async def close(self) -> None:
        """Lets go of all connections; those of a loop that has ended cannot say goodbye."""
        loop, clients = self._loop, self._clients
        self._loop, self._clients, self._idle = None, set(), []
        if loop is asyncio.get_running_loop():
            for client in clients:
                await client.aclose()

    async def _discard(self, client: httpx.AsyncClient) -> None:
        """Sends no other request through it.

        httpcore (1.0.9) takes a connection for busy for ever where its request was cancelled in
        the turn of the event loop in which it began on a new connection, or ended on any.
        """
        self._clients.discard(client)
        if self._transport is None:  # the caller's is shared by all clients
            await client.aclose()

    def _settle(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            self._turns = asyncio.Semaphore(self._concurrency)
            self._clients, self._idle = set(), []

    def _open(self) -> httpx.AsyncClient:
        client = open_async_client(self.url, transport=self._transport)
        self._clients.add(client)
        return client
