"""HTTP connections that outlive an event loop.

asyncio's objects cannot change loops, and a trainer opens several one after the other.
"""

import asyncio

import httpx


class Connections:
    """A pool for whichever event loop asks, with a bound on the requests under way at once."""

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

    async def request(self, method: str, path: str, body: object = None) -> httpx.Response:
        """Sends JSON; raises what httpx raises, for the caller to translate."""
        self._settle()
        async with self._turns:
            return await self._client.request(method, path, json=body)

    async def close(self) -> None:
        """Lets go of the running loop's connections."""
        if self._loop is asyncio.get_running_loop():
            self._loop = None
            await self._client.aclose()

    def _settle(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is self._loop:
            return
        self._loop = loop
        self._turns = asyncio.Semaphore(self._concurrency)
        self._client = httpx.AsyncClient(
            base_url=self.url,
            timeout=self._timeout_seconds,
            limits=httpx.Limits(max_connections=self._concurrency),
            transport=self._transport,
            # A proxy of the machine cannot reach a server on this machine's loopback.
            trust_env="://127.0.0.1" not in self.url,
        )
