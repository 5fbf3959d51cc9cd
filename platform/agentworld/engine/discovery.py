"""Resolves the name of an engine to the addresses of its replicas.

The name belongs to a headless Service: it resolves to the addresses of the ready replicas, and to
none while the engine is scaled to zero or starting.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection

_NO_ADDRESS = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))

Resolve = Callable[[], Awaitable[Collection[str]]]
"""The URLs of the current replicas; raises OSError if the lookup fails."""


def by_name(host: str, port: int) -> Resolve:
    """Looks up all addresses of a host with the event loop's resolver."""

    async def resolve() -> set[str]:
        loop = asyncio.get_running_loop()
        try:
            addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            if error.errno in _NO_ADDRESS:
                return set()
            raise
        # a replica with an address of each family counts once
        has_ipv4 = any(family == socket.AF_INET for family, *_ in addresses)
        return {
            _url(str(address[0]), port)
            for family, *_, address in addresses
            if family == socket.AF_INET or not has_ipv4
        }

    return resolve


def _url(address: str, port: int) -> str:
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
