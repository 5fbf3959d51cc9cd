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
        self._clients: list[httpx.AsyncClient] = []
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
                    return await client.request(
                        method, path, content=content, json=value, headers=headers
                    )
            except TimeoutError as error:
                raise httpx.ReadTimeout(f"waited {self._timeout_seconds:g} s") from error
            except AttributeError as error:
                # anyio (4.16) asks a new connection for its peer, and uvloop has no socket any
                # more where the server has closed it by then.
                if error.name != "getpeername":
                    raise
                raise httpx.ConnectError("closed by the server as it was opened") from error
            finally:
                idle.append(client)

    async def close(self) -> None:
        """Lets go of all connections; those of a loop that has ended cannot say goodbye."""
        loop, clients = self._loop, self._clients
        self._loop, self._clients, self._idle = None, [], []
        if loop is asyncio.get_running_loop():
            for client in clients:
                await client.aclose()

    def _settle(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            self._turns = asyncio.Semaphore(self._concurrency)
            self._clients, self._idle = [], []

    def _open(self) -> httpx.AsyncClient:
        client = open_async_client(self.url, transport=self._transport)
        self._clients.append(client)
        return client
