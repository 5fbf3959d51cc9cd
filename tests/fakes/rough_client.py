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
    with socket.socket() as connection:
        connection.settimeout(_LONGEST_SECONDS)
        if not reads:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        connection.connect((address.hostname, address.port))
        yield connection


@contextmanager
def upgraded(url: str, path: str, *, reads: bool = True) -> Iterator[socket.socket]:
    """A connection that was upgraded to a WebSocket."""
    with connected(url, reads=reads) as connection:
        connection.sendall(handshake(path))
        head = until(connection, b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 "), head
        yield connection


def handshake(path: str) -> bytes:
    return _HANDSHAKE.format(path).encode()


def request(path: str = "/health", body: bytes = b"", *fields: str, method: str = "GET") -> bytes:
    """One whole request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join([*lines, "", ""]).encode() + body


def ask(url: str, path: str = "/health", body: bytes = b"", *, method: str = "GET") -> bytes:
    """The response to one request on a new connection."""
    with connected(url) as connection:
        fields = "Connection: close", "Content-Type: application/json"
        connection.sendall(request(path, body, *fields, method=method))
        return until_closed(connection)


def read_status(connection: socket.socket) -> int:
    """The status of the next response on a connection, which is read to its end."""
    with HTTPResponse(connection) as response:
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


def send_all(connection: socket.socket, data: bytes) -> None:
    """Sends to a server that may close the connection in the meantime."""
    with suppress(ConnectionError):
        connection.sendall(data)


def send_for_ever(connection: socket.socket, data: bytes) -> int:
    """Sends until the server closes the connection; returns the number of bytes sent."""
    num_bytes = 0
    with suppress(ConnectionError):
        while True:
            num_bytes += connection.send(data)
    return num_bytes


def send_after(connection: socket.socket, *parts: bytes) -> None:
    """Continues sending after the server's first bytes; fails if it has closed the connection."""
    connection.recv(1, socket.MSG_PEEK)
    for part in parts:
        connection.sendall(part)


def until(connection: socket.socket, end: bytes) -> bytes:
    """Reads until the data ends with `end`."""
    data = b""
    while not data.endswith(end):
        part = connection.recv(2**16)
        assert part, data
        data += part
    return data


def until_closed(connection: socket.socket) -> bytes:
    """Reads until the connection is closed; fails if that takes too long."""
    data = b""
    with suppress(ConnectionError):
        while part := connection.recv(2**16):
            data += part
    return data


def reset(connection: socket.socket) -> None:
    """Closes with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
