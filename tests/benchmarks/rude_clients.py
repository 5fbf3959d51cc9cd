"""Clients that mean harm, or are broken: each does one thing that no protocol knows."""

import random

from websockets.frames import Frame, Opcode

from benchmarks.slow_clients import Client
from benchmarks.wire import Place, Wire, connected

_BLOCK = bytes(2**16)
_CHUNK = b"10000\r\n" + _BLOCK + b"\r\n"
_POST = b"POST /steps HTTP/1.1\r\nHost: a\r\n"
# Opens no episode: one that stays open is no client's harm.
_STATE = Frame(Opcode.TEXT, b'{"type":"state"}').serialize(mask=True)
_STEP = b'{"episode":"nobody","action":"ls","step":1}'
_GET = b"GET /health HTTP/1.1\r\nHost: a\r\n"
_MIDDLES = (
    b"GET /hea",
    _POST + b"Content-Length: 9\r\n\r\n",
    _POST + b"Content-Length: %d\r\n\r\n" % len(_STEP) + _STEP,
    _GET + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    (_GET + b"\r\n") * 2,
)
_PART = Frame(Opcode.CONT, b"", fin=False).serialize(mask=True)
_PING = Frame(Opcode.PING, b"x").serialize(mask=True)
_GIANT = b"\x82\xff" + (2**40).to_bytes(8) + b"mask"


async def half_open(place: Place) -> bytes:
    """It began a request, or a WebSocket, and is not there any more."""
    async with connected(place) as wire:
        if random.random() < 0.5:
            await wire.send(b"GET /hea")
        else:
            await wire.upgrade(place.path)
        return await wire.read_all()


async def garbage(place: Place) -> bytes:
    async with connected(place) as wire:
        await wire.send(random.randbytes(1000))
        return await wire.read_all()


async def garbage_frames(place: Place) -> bytes:
    async with connected(place) as wire:
        await wire.upgrade(place.path)
        await wire.send(_STATE + random.randbytes(1000))
        await wire.read_all()
    return b""


async def giant_body(place: Place) -> bytes:
    async with connected(place) as wire:
        await wire.send(_POST + b"Content-Length: 1073741824\r\n\r\n")
        return await _sending(wire, _BLOCK)


async def giant_chunked_body(place: Place) -> bytes:
    async with connected(place) as wire:
        await wire.send(_POST + b"Transfer-Encoding: chunked\r\n\r\n")
        return await _sending(wire, _CHUNK)


async def giant_frame(place: Place) -> bytes:
    async with connected(place) as wire:
        await wire.upgrade(place.path)
        await wire.send(_GIANT)
        await _sending(wire, _BLOCK)
    return b""


async def endless_frames(place: Place) -> bytes:
    """A message in parts of nothing, or pings, without end."""
    async with connected(place) as wire:
        await wire.upgrade(place.path)
        begins = Frame(Opcode.TEXT, b"", fin=False).serialize(mask=True)
        parts = random.choice([begins + _PART * 5_000, _PING * 5_000])
        await wire.send(parts)
        await wire.read_all()
    return b""


async def reset_in_the_middle(place: Place) -> bytes:
    """Of a head, of a body, of a handshake, of two requests, before a step's answer."""
    async with connected(place) as wire:
        wire.reset()
        if random.random() < 0.2:
            await wire.upgrade(place.path)
            await wire.send(_STATE * 3)
        else:
            await wire.send(random.choice(_MIDDLES))
    return b""


async def _sending(wire: Wire, data: bytes) -> bytes:
    """Sends for as long as the service lets it; what it said then."""
    try:
        while True:
            await wire.send(data)
    except OSError:
        return await wire.read_all()


RUDE: tuple[Client, ...] = (
    half_open,
    garbage,
    garbage_frames,
    giant_body,
    giant_chunked_body,
    giant_frame,
    endless_frames,
    reset_in_the_middle,
)
