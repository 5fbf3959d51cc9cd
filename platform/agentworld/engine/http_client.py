"""HTTP clients for model servers: timeouts, limits and the user agent."""

import ssl
from functools import cache
from typing import TypedDict

import httpx

from agentworld import __version__

# less than uvicorn's keep-alive of 5 s, so that a request does not meet a closed connection
_IDLE_SECONDS = 3.0


class _Options(TypedDict):
    headers: dict[str, str]
    trust_env: bool
    verify: ssl.SSLContext


def open_client(url: str, *, timeout_seconds: float) -> httpx.Client:
    """A synchronous client; the timeout is that of one read."""
    limits = httpx.Limits(keepalive_expiry=_IDLE_SECONDS)
    return httpx.Client(timeout=timeout_seconds, limits=limits, **_options(url))


def open_async_client(
    url: str, *, transport: httpx.AsyncBaseTransport | None = None
) -> httpx.AsyncClient:
    """A client with one connection to `url`; the caller limits the time of a whole request."""
    limits = httpx.Limits(max_connections=1, keepalive_expiry=_IDLE_SECONDS)
    return httpx.AsyncClient(
        base_url=url, timeout=None, limits=limits, transport=transport, **_options(url)
    )


def _options(url: str) -> _Options:
    return _Options(
        headers={"user-agent": f"agentworld/{__version__}"},
        # A proxy of the machine cannot reach a server on this machine's loopback.
        trust_env="://127.0.0.1" not in url,
        verify=trusted_authorities(),
    )


@cache
def trusted_authorities() -> ssl.SSLContext:
    """Cached, because loading the certificates takes as long as many requests."""
    return httpx.create_ssl_context()
