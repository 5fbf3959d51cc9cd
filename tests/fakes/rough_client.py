"""A client that sends raw bytes, valid or not."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPResponse
from urllib.parse import urlsplit

from websockets.frames import Frame, Opcode

_LONGEST_SECONDS = 60.0
_HANDSHAKE = (
    "GET {} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


@contextmanager
def connected(url: str, *, reads: bool = True) -> Iterator[socket.socket]:
    """A connection; if it does not read, its network buffers are minimal."""
    address = urlsplit(url)
    with socket.socket() as wire:
        wire.settimeout(_LONGEST_SECONDS)
        if not reads:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        wire.connect((address.hostname, address.port))
        yield wire


@contextmanager
def upgraded(url: str, path: str, *, reads: bool = True) -> Iterator[socket.socket]:
    """A connection that is a WebSocket."""
    with connected(url, reads=reads) as wire:
        wire.sendall(handshake(path))
        head = until(wire, b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 "), head
        yield wire


def handshake(path: str) -> bytes:
    return _HANDSHAKE.format(path).encode()


def request(path: str = "/health", body: bytes = b"", *more: str, method: str = "GET") -> bytes:
    """One whole request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", *more]
    return "\r\n".join([*lines, "", ""]).encode() + body


def ask(url: str, path: str = "/health", body: bytes = b"", *, method: str = "GET") -> bytes:
    """The answer to one request on a connection of its own."""
    with connected(url) as wire:
        fields = "Connection: close", "Content-Type: application/json"
        wire.sendall(request(path, body, *fields, method=method))
        return until_closed(wire)


def read_status(wire: socket.socket) -> int:
    """The status of the next answer on a connection, which is read to its end."""
    with HTTPResponse(wire) as response:
        response.begin()
        response.read()
        return response.status


def answers(url: str) -> bool:
    """Whether the service responds."""
    return ask(url).startswith(b"HTTP/1.1 200 ")


def frame(data: bytes | str, opcode: Opcode = Opcode.TEXT, *, last: bool = True) -> bytes:
    """One frame, as a client masks it."""
    raw = data.encode() if isinstance(data, str) else data
    return Frame(opcode, raw, last).serialize(mask=True)


def send_all(wire: socket.socket, data: bytes) -> None:
    """To a server that may hang up meanwhile."""
    with suppress(ConnectionError):
        wire.sendall(data)


def send_for_ever(wire: socket.socket, data: bytes) -> int:
    """Until the server hangs up; returns how many bytes the network took."""
    num_bytes = 0
    with suppress(ConnectionError):
        while True:
            num_bytes += wire.send(data)
    return num_bytes


def send_after(wire: socket.socket, *parts: bytes) -> None:
    """Goes on sending when the server has said something; fails where it has hung up."""
    wire.recv(1, socket.MSG_PEEK)
    for part in parts:
        wire.sendall(part)


def until(wire: socket.socket, end: bytes) -> bytes:
    """All that is said until it ends so."""
    said = b""
    while not said.endswith(end):
        part = wire.recv(2**16)
        assert part, said
        said += part
    return said


def until_closed(wire: socket.socket) -> bytes:
    """All that is still said; fails where the other side does not close in a while."""
    said = b""
    with suppress(ConnectionError):
        while part := wire.recv(2**16):
            said += part
    return said


def reset(wire: socket.socket) -> None:
    """Closes without a good-bye."""
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.close()
