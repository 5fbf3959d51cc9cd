"""MCP's streamable HTTP transport to a server that was started elsewhere."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED

from agentworld.domains.mcp.transport import MOST_BYTES, Streams

_SESSION = "mcp-session-id"
_SECONDS_TO_CONNECT = 10.0


class HttpState:
    """See `TransportState`."""

    def __init__(self) -> None:
        self._reason = ""

    @property
    def has_ended(self) -> bool:
        """Whether a request failed."""
        return bool(self._reason)

    def fail(self, reason: str) -> None:
        """Records why a request failed; the first reason stays."""
        self._reason = self._reason or reason

    def is_fault(self, code: int) -> bool:
        """The package also uses the code for an answer that ends early."""
        return self.has_ended or code == CONNECTION_CLOSED

    def detail(self) -> str:
        """Why a request failed."""
        return f"; {self._reason}" if self._reason else ""


@asynccontextmanager
async def http_streams(
    url: str, headers: Mapping[str, str], state: HttpState
) -> AsyncIterator[Streams]:
    """The streams to the server at this address; all requests have these headers."""
    async with (
        _WatchedClient(state, headers) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams


class _WatchedClient(httpx2.AsyncClient):
    """Records failures, because the package shows most of them as errors of the protocol."""

    def __init__(self, state: HttpState, headers: Mapping[str, str]) -> None:
        # A server may keep a stream open; the connection limits the time of each call.
        timeout = httpx2.Timeout(_SECONDS_TO_CONNECT, read=None)
        super().__init__(headers=dict(headers), timeout=timeout)
        self._http_state = state  # httpx2's client has a `_state` of its own

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as error:
            self._fail(request, f"the request failed: {error!s:.200}")
            raise
        if _is_fault(response):
            self._fail(request, f"the server answered with HTTP status {response.status_code}")
        if isinstance(response.stream, httpx2.AsyncByteStream) and request.method == "POST":
            response.stream = _WatchedStream(response.stream, self._http_state)
        return response

    def _fail(self, request: httpx2.Request, reason: str) -> None:
        # A server may have no stream of its own messages (GET), and may end no session (DELETE).
        if request.method == "POST":
            self._http_state.fail(reason)


class _WatchedStream(httpx2.AsyncByteStream):
    """An answer of limited length."""

    def __init__(self, stream: httpx2.AsyncByteStream, state: HttpState) -> None:
        self._stream = stream
        self._state = state

    async def __aiter__(self) -> AsyncIterator[bytes]:
        num_bytes = 0
        try:
            async for part in self._stream:
                num_bytes += len(part)
                if num_bytes > MOST_BYTES:
                    raise httpx2.ReadError(f"the answer has more than {MOST_BYTES} bytes")
                yield part
        except httpx2.TransportError as error:
            self._state.fail(f"the answer broke off: {error!s:.200}")
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()


def _is_fault(response: httpx2.Response) -> bool:
    """Whether a status says more than that the server refused a request."""
    if response.status_code == 404:  # an unknown method, or a session that has ended
        return _SESSION in response.request.headers
    return response.status_code != 400 and not response.is_success
