"""An unreliable network between two parties.

It does not parse the protocol, except for turns: data from one side after the other side's begins a
request.
"""

import asyncio
import math
import random
import socket
import struct
import time
from collections.abc import Sequence
from typing import Literal, NamedTuple

from campaigns.harness.journal import Journal

LOOPBACK = "127.0.0.1"
_PIECE = 65_536
_LONGEST_DELAY_SECONDS = 0.3
_MOMENT_SECONDS = 0.5
_RESET = struct.pack("ii", 1, 0)

Fate = Literal["dropped", "half a request", "unanswered", "half an answer", "delayed"]
_FATES: tuple[Fate, ...] = ("dropped", "half a request", "unanswered", "half an answer", "delayed")


class _Way(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Proxy:
    """One port in front of several servers; a connection goes to any of them that accepts it."""

    def __init__(
        self, name: str, port: int, servers: Sequence[int], rate: float, seed: str, faults: Journal
    ) -> None:
        self.name = name
        self.port = port
        self.url = f"http://{LOOPBACK}:{port}"
        self.rate = rate
        self.under_way = 0
        """Requests without a response so far."""
        self._asked_at = -math.inf
        self._servers = servers
        self._random = random.Random(f"{name} {seed}")
        self._faults = faults
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def in_use(self) -> bool:
        """Whether a request is active, or was a moment ago."""
        return self.under_way > 0 or time.monotonic() - self._asked_at < _MOMENT_SECONDS

    async def open(self) -> None:
        """Accepts connections."""
        self._server = await asyncio.start_server(self._converse, LOOPBACK, self.port)

    async def shut(self) -> None:
        """Refuses connections and closes the existing ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._open):
            _cut(writer, reset=True)
        await asyncio.sleep(0)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        server = await self._connect()
        try:
            if server is not None:
                self._open.add(server.writer)
                await _Conversation(self, _Way(reader, writer), server).run()
        finally:
            for stream in (writer, *([server.writer] if server else [])):
                self._open.discard(stream)
                _cut(stream, reset=False)

    async def _connect(self) -> _Way | None:
        for port in self._random.sample(self._servers, len(self._servers)):
            try:
                return _Way(*await asyncio.open_connection(LOOPBACK, port))
            except OSError:
                continue
        return None

    def draw(self) -> Fate | None:
        """Draws the fate of the request that begins."""
        self._asked_at = time.monotonic()
        return self._random.choice(_FATES) if self._random.random() < self.rate else None

    def part(self, data: bytes) -> bytes:
        """The first part of some data."""
        return data[: self._random.randrange(1, max(2, len(data)))]

    async def delay(self) -> None:
        """Waits for a random delay."""
        await asyncio.sleep(self._random.uniform(0.01, _LONGEST_DELAY_SECONDS))

    def count(self, fate: Fate) -> bool:
        """Records the fault; returns whether the connection is reset, or closed normally."""
        self._faults.write(kind=f"network: {fate}", target=self.name)
        return self._random.random() < 0.5


class _Conversation:
    """A connection and the one to the server."""

    def __init__(self, proxy: Proxy, client: _Way, server: _Way) -> None:
        self._proxy = proxy
        self._here = client
        self._there = server
        self._fate: Fate | None = None
        self._asked = False

    async def run(self) -> None:
        ways = [asyncio.create_task(self._ask()), asyncio.create_task(self._answer())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._turn(asked=False)

    def _turn(self, *, asked: bool) -> None:
        self._proxy.under_way += asked - self._asked
        self._asked = asked

    async def _ask(self) -> None:
        while data := await self._here.reader.read(_PIECE):
            is_first = not self._asked
            self._turn(asked=True)
            if is_first:
                self._fate = self._proxy.draw()
            if self._fate in ("dropped", "half a request"):
                if self._fate == "half a request":
                    await _send(self._there, self._proxy.part(data))
                self._cut(self._fate)
                return
            if is_first and self._fate == "delayed":
                self._proxy.count(self._fate)
                await self._proxy.delay()
            await _send(self._there, data)

    async def _answer(self) -> None:
        while data := await self._there.reader.read(_PIECE):
            if self._fate in ("unanswered", "half an answer"):
                if self._fate == "half an answer":
                    await _send(self._here, self._proxy.part(data))
                self._cut(self._fate)
                return
            self._turn(asked=False)
            await _send(self._here, data)

    def _cut(self, fate: Fate) -> None:
        reset = self._proxy.count(fate)
        for way in (self._here, self._there):
            _cut(way.writer, reset=reset)


async def _send(way: _Way, data: bytes) -> None:
    way.writer.write(data)
    await way.writer.drain()


def _cut(writer: asyncio.StreamWriter, *, reset: bool) -> None:
    """Closes within a message: with a reset, or like a normal end."""
    if reset and not writer.transport.is_closing():
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        writer.transport.abort()
    writer.close()
