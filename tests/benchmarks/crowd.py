"""Slow and hostile clients in a separate process, so that they do not affect healthy ones' figures.

A slow client uses a service like a distant one; a rude one is hostile or broken, and violates the
protocol in one way.
"""

import asyncio
import multiprocessing
import random
import socket
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import cycle, islice, repeat
from multiprocessing.connection import Connection
from typing import NamedTuple
from urllib.parse import urlsplit

import uvloop
from websockets.frames import Frame, Opcode

from agentworld.errors import SimulatorError

_PAUSE_SECONDS = 1.0
_READ_BYTES = 2**16
_LEAVE_SECONDS = 60.0
_HANDSHAKE = (
    "GET {} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
_NO_GOODBYE = struct.pack("ii", 1, 0)


def _frame(opcode: Opcode, data: bytes = b"", *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin=fin).serialize(mask=True)


class Start(NamedTuple):
    """The first bytes of a client."""

    data: bytes = b""
    socket: bool = False
    """Over a WebSocket."""


class BadClient(NamedTuple):
    """A kind of client; each connection begins with one of its starts, at random."""

    starts: tuple[Start, ...] = (Start(),)
    drips: bytes = b""
    """Bytes that it then sends slowly, one at a time."""
    floods: bytes = b""
    """Bytes that it then sends repeatedly."""
    reads: bool = True
    """Reads until the service closes the connection; otherwise it resets the connection at once."""
    reads_slowly: bool = False
    answers_pings: bool = False

    async def visit(self, url: str) -> bytes:
        """One connection, until it ends; returns the beginning of the service's response."""
        address = urlsplit(url)
        loop, start = asyncio.get_running_loop(), random.choice(self.starts)
        with socket.socket() as connection:
            connection.setblocking(False)
            if self.reads_slowly:  # with small network buffers
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
            await loop.sock_connect(connection, (address.hostname, address.port))
            if not self.reads:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_GOODBYE)
            if start.socket:
                await _upgrade(connection, address.path)
            await loop.sock_sendall(connection, start.data)
            if not self.reads:
                return b""
            send_task = asyncio.create_task(self._send(connection))
            try:
                return await self._read(connection)
            finally:
                send_task.cancel()
                await asyncio.gather(send_task, return_exceptions=True)

    async def _send(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        parts: Iterable[bytes] = (bytes([byte]) for byte in self.drips)
        for part in repeat(self.floods) if self.floods else parts:
            await loop.sock_sendall(connection, part)
            await asyncio.sleep(_PAUSE_SECONDS if self.drips else 0)

    async def _read(self, connection: socket.socket) -> bytes:
        loop, beginning = asyncio.get_running_loop(), b""
        while part := await loop.sock_recv(connection, 256 if self.reads_slowly else _READ_BYTES):
            beginning = beginning or part
            if self.answers_pings and part[0] == 0x80 | Opcode.PING:
                await loop.sock_sendall(connection, _frame(Opcode.PONG, part[2:]))
            if self.reads_slowly:
                await asyncio.sleep(_PAUSE_SECONDS)
        return beginning


async def _upgrade(connection: socket.socket, path: str) -> None:
    loop, head = asyncio.get_running_loop(), b""
    await loop.sock_sendall(connection, _HANDSHAKE.format(path).encode())
    while not head.endswith(b"\r\n\r\n"):
        part = await loop.sock_recv(connection, _READ_BYTES)
        if not part:
            raise ConnectionError(f"no WebSocket, but {head[:80]!r}")
        head += part


_POST = b"POST /steps HTTP/1.1\r\nHost: a\r\n"
_HEAD = _POST + b"Content-Length: 1000\r\n"
_GET = b"GET /health HTTP/1.1\r\nHost: a\r\n"
_LARGE = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"
_STEP = b'{"episode":"nobody","action":"ls","step":1}'
# Opens no episode, because an open one is legitimate.
_STATE = _frame(Opcode.TEXT, b'{"type":"state"}')
_BLOCK = bytes(2**16)
_GARBAGE = [random.randbytes(1000) for _ in range(50)]

SLOW = {
    "slow_head": BadClient(drips=_HEAD * 10),
    "slow_body": BadClient((Start(_HEAD + b"\r\n"),), drips=b"x" * 1000),
    "slow_reader": BadClient((Start(_LARGE * 8),), reads_slowly=True),
    "idle_socket": BadClient((Start(socket=True),), answers_pings=True),
    "slow_message": BadClient((Start(socket=True),), drips=_frame(Opcode.TEXT, b"x" * 1000)),
}
RUDE = {
    "half_open": BadClient((Start(b"GET /hea"), Start(socket=True))),
    "garbage": BadClient(tuple(Start(data) for data in _GARBAGE)),
    "garbage_frames": BadClient(tuple(Start(_STATE + data, socket=True) for data in _GARBAGE)),
    "giant_body": BadClient((Start(_POST + b"Content-Length: 1073741824\r\n\r\n"),), floods=_BLOCK),
    "giant_chunked_body": BadClient(
        (Start(_POST + b"Transfer-Encoding: chunked\r\n\r\n"),),
        floods=b"10000\r\n" + _BLOCK + b"\r\n",
    ),
    "giant_frame": BadClient(
        (Start(b"\x82\xff" + (2**40).to_bytes(8) + b"mask", socket=True),), floods=_BLOCK
    ),
    "endless_frames": BadClient(
        (
            Start(
                _frame(Opcode.TEXT, fin=False) + _frame(Opcode.CONT, fin=False) * 5_000,
                socket=True,
            ),
            Start(_frame(Opcode.PING, b"x") * 5_000, socket=True),
        )
    ),
    "reset_in_the_middle": BadClient(
        (
            Start(b"GET /hea"),
            Start(_POST + b"Content-Length: 9\r\n\r\n"),
            Start(_POST + b"Content-Length: %d\r\n\r\n" % len(_STEP) + _STEP),
            Start(_GET + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
            Start((_GET + b"\r\n") * 2),
            Start(_STATE * 3, socket=True),
        ),
        reads=False,
    ),
}
_KINDS = SLOW | RUDE


class CrowdResult(NamedTuple):
    """The observations of the crowd."""

    rounds: dict[str, int]
    """The connections of each kind of client."""
    server_errors: int
    """Responses of 500 and more."""


class Crowd(NamedTuple):
    """Clients in a process that is ready for them."""

    pid: int
    process: Connection

    def come(self) -> None:
        """Starts all clients."""
        self.process.send("come")

    def leave(self) -> CrowdResult:
        """Ends all clients, and returns their observations."""
        self.process.send("leave")
        if not self.process.poll(_LEAVE_SECONDS):
            raise SimulatorError(f"slow and rude clients are not gone in {_LEAVE_SECONDS:.0f} s")
        observations: CrowdResult = self.process.recv()
        return observations


@contextmanager
def crowd_of(url: str, slow: int, rude: int, within: float) -> Iterator[Crowd]:
    """Clients that first connect within this many seconds; `url` is an open run's WebSocket."""
    spawn = multiprocessing.get_context("spawn")
    own_end, child_end = spawn.Pipe()
    process = spawn.Process(target=_run, args=(child_end, url, slow, rude, within), daemon=True)
    process.start()
    child_end.close()
    try:
        own_end.recv()
        assert process.pid is not None
        yield Crowd(process.pid, own_end)
    finally:
        process.terminate()
        process.join()


def _run(storm: Connection, url: str, slow: int, rude: int, within: float) -> None:
    names = [*islice(cycle(SLOW), slow), *islice(cycle(RUDE), rude)]
    storm.send("ready")
    storm.recv()
    storm.send(uvloop.run(_gather(storm, url, names, within)))


async def _gather(storm: Connection, url: str, names: list[str], within: float) -> CrowdResult:
    rounds: Counter[str] = Counter()
    num_errors = 0

    async def reconnect(name: str) -> None:
        """Errors of such a client are expected; healthy clients notice a service that is down."""
        nonlocal num_errors
        await asyncio.sleep(random.uniform(0, within))
        while True:
            await asyncio.sleep(random.uniform(0, 2 * _PAUSE_SECONDS))
            beginning = b""
            with suppress(OSError):
                beginning = await _KINDS[name].visit(url)
            rounds[name] += 1
            num_errors += beginning.startswith(b"HTTP/1.1 5")

    end_event = asyncio.Event()
    asyncio.get_running_loop().add_reader(storm.fileno(), end_event.set)
    tasks = [asyncio.create_task(reconnect(name)) for name in names]
    await asyncio.wait(
        {*tasks, asyncio.create_task(end_event.wait())}, return_when="FIRST_COMPLETED"
    )
    for task in tasks:
        task.cancel()
    for problem in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(problem, Exception):
            raise problem
    return CrowdResult(dict(rounds), num_errors)
