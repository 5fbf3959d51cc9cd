"""HTTP connections that can be used from several event loops. asyncio's objects belong to one loop,
and a trainer opens several loops one after the other.
"""

import asyncio
from collections.abc import Mapping

import httpx

from agentworld.engine.http_client import open_async_client


class Connections:
    """A connection pool for any event loop, with a limit on concurrent requests.

    Each connection is a client of its own, because httpx searches its whole pool for every request,
    which at 64 connections takes longer than the rest of the request.
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
        """Sends a value as JSON, or bytes that are JSON; raises httpx's errors, which the caller
        translates. The timeout covers the request from its turn in the queue to the last byte of
        the response.
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
                # anyio (4.16) asks a new connection for its peer's address, and uvloop has no
                # socket any more if the server has closed it by then.
                if isinstance(error, AttributeError) and error.name == "getpeername":
                    raise httpx.ConnectError("closed by the server as it was opened") from error
                raise
            idle.append(client)
            return response

    async def close(self) -> None:
        """Closes all connections; those of an ended loop are dropped."""
        loop, clients = self._loop, self._clients
        self._loop, self._clients, self._idle = None, set(), []
        if loop is asyncio.get_running_loop():
            for client in clients:
                await client.aclose()

    async def _discard(self, client: httpx.AsyncClient) -> None:
        """Never uses this client again. httpcore (1.0.9) marks a connection as busy for ever if its
        request was cancelled in the loop iteration in which it began on a new connection, or ended
        on any.
        """
        self._clients.discard(client)
        if self._transport is None:  # otherwise all clients share the caller's
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
