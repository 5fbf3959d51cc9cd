"""The addresses of an engine's replicas, from the one name that all of them share.

The name is a headless Service's: it resolves to the addresses of the replicas that are ready, and
to none where the engine is scaled to zero or still starts.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection

_NO_ADDRESS = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))

Resolve = Callable[[], Awaitable[Collection[str]]]
"""The URLs of the replicas that are there now; raises OSError where nobody can say."""


def by_name(host: str, port: int) -> Resolve:
    """Asks the event loop's resolver for all addresses of a host."""

    async def resolve() -> set[str]:
        loop = asyncio.get_running_loop()
        try:
            addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            if error.errno in _NO_ADDRESS:
                return set()
            raise
        # A replica with an address of each family is one replica.
        has_ipv4 = any(family == socket.AF_INET for family, *_ in addresses)
        return {
            _url(str(address[0]), port)
            for family, *_, address in addresses
            if family == socket.AF_INET or not has_ipv4
        }

    return resolve


def _url(address: str, port: int) -> str:
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
