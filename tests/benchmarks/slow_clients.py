"""Clients that are slow: each takes what a service gives to one that is only far away."""

import asyncio
from collections.abc import Awaitable, Callable

from websockets.frames import Frame, Opcode

from benchmarks.wire import Place, connected

Client = Callable[[Place], Awaitable[bytes]]
"""One connection, until it ends; returns what the service said of it."""

_PAUSE_SECONDS = 1.0
_SMALL_BYTES = 4_096
_HEAD = b"POST /steps HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n"
_LARGE = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"
_MESSAGE = Frame(Opcode.TEXT, b"x" * 1000).serialize(mask=True)
_PING = 0x89


async def slow_head(place: Place) -> bytes:
    return await _dripping(place, b"", _HEAD * 10)


async def slow_body(place: Place) -> bytes:
    return await _dripping(place, _HEAD + b"\r\n", b"x" * 1000)


async def slow_reader(place: Place) -> bytes:
    """Asks for more than the network takes, and reads it by and by."""
    async with connected(place, _SMALL_BYTES) as wire:
        await wire.send(_LARGE * 8)
        said = b""
        while part := await wire.read(256):
            said = said or part
            await asyncio.sleep(_PAUSE_SECONDS)
        return said


async def idle_socket(place: Place) -> bytes:
    """It answers pings and nothing else."""
    async with connected(place) as wire:
        await wire.upgrade(place.path)
        while said := await wire.read():
            if said[0] == _PING:
                await wire.send(Frame(Opcode.PONG, said[2:]).serialize(mask=True))
        return b""


async def slow_message(place: Place) -> bytes:
    async with connected(place) as wire:
        await wire.upgrade(place.path)
        for place_of in range(len(_MESSAGE)):
            await wire.send(_MESSAGE[place_of : place_of + 1])
            await asyncio.sleep(_PAUSE_SECONDS)
        return b""


async def _dripping(place: Place, at_once: bytes, slowly: bytes) -> bytes:
    """Sends a byte now and then; the service has to end it, for it never does."""
    async with connected(place) as wire:
        await wire.send(at_once)
        drip = asyncio.create_task(_drip(wire.send, slowly))
        try:
            return await wire.read_all()
        finally:
            drip.cancel()
            await asyncio.gather(drip, return_exceptions=True)


async def _drip(send: Callable[[bytes], Awaitable[None]], data: bytes) -> None:
    for place in range(len(data)):
        await send(data[place : place + 1])
        await asyncio.sleep(_PAUSE_SECONDS)


SLOW: tuple[Client, ...] = (slow_head, slow_body, slow_reader, idle_socket, slow_message)
