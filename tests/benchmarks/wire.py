"""A connection that a storm's client makes what it likes of: bytes, when and as it wants."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

_HANDSHAKE = (
    "GET {} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
_READ_BYTES = 2**16


class Place(NamedTuple):
    """Where the service is."""

    host: str
    port: int
    path: str
    """Of an open run's WebSocket."""


class Wire:
    """A socket; what the service does to it is an OSError."""

    def __init__(self, wire: socket.socket) -> None:
        self._wire = wire
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._wire, data)

    async def read(self, num_bytes: int = _READ_BYTES) -> bytes:
        """What is there, at most so much; nothing where the service has closed."""
        return await self._loop.sock_recv(self._wire, num_bytes)

    async def read_all(self) -> bytes:
        """Until the service closes; no more than its beginning is kept."""
        said = b""
        while part := await self.read():
            said += part if len(said) < _READ_BYTES else b""
        return said

    async def upgrade(self, path: str) -> None:
        """Makes it a WebSocket."""
        await self.send(_HANDSHAKE.format(path).encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            part = await self.read()
            if not part:
                raise ConnectionError(f"no WebSocket, but {head[:80]!r}")
            head += part

    def reset(self) -> None:
        """From now on it closes without a good-bye."""
        self._wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@asynccontextmanager
async def connected(place: Place, receive_bytes: int | None = None) -> AsyncIterator[Wire]:
    """The network holds about so many bytes for a client that does not read."""
    with socket.socket() as wire:
        wire.setblocking(False)
        if receive_bytes is not None:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        await asyncio.get_running_loop().sock_connect(wire, (place.host, place.port))
        yield Wire(wire)
