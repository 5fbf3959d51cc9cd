"""One episode on one connection, as a client of the OpenEnv wire sees it."""

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import WebSocketURI, parse_uri

from agentworld.errors import SimulatorError
from benchmarks.http_episode import HttpEpisode
from benchmarks.wires import HTTP_WIRES

_AT_ONCE = 50
_LONGEST_SECONDS = 60.0
_RESET = b'{"type":"reset","data":{}}'
_CLOSE = b'{"type":"close"}'
_ACTIONS = ("ls", "cat rimo.txt", "echo kolu > tane.txt", "cat tane.txt", "rm rimo.txt", "pwd")
_STEPS = [json.dumps({"type": "step", "data": {"action": action}}).encode() for action in _ACTIONS]


class Episode(asyncio.Protocol):
    """Asks for the next step as soon as it has the answer to the last one.

    An episode that is done is reset and goes on. Whatever is no observation ends all by a
    SimulatorError.
    """

    def __init__(self, uri: WebSocketURI) -> None:
        self._wire = ClientProtocol(uri, max_size=None)
        self._frames = itertools.cycle(_STEPS)
        self._asked: float | None = None
        """When the step was sent that is under way; null while a reset is."""
        self._note: Callable[[float, float], bool] | None = None
        self._waits: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(self) -> None:
        """Returns when what was begun last is over: opening, or taking steps."""
        await self._waits

    async def take_steps(self, note: Callable[[float, float], bool]) -> None:
        """`note` is told when a step was asked and answered, and says whether to go on."""
        self._waits, self._note = asyncio.get_running_loop().create_future(), note
        self._ask_step()
        self._flush()
        await self._waits

    def close(self) -> None:
        """Says goodbye; `gone` is set when the server has let go of the episode."""
        self._wire.send_text(_CLOSE)
        self._flush()

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._wire.send_request(self._wire.connect())
        self._flush()

    def data_received(self, data: bytes) -> None:
        self._wire.receive_data(data)
        for event in self._wire.events_received():
            if not isinstance(event, Frame):
                self._shake_hands()
            elif event.opcode is Opcode.TEXT:
                self._hear(event.data)
        self._flush()

    def connection_lost(self, _error: Exception | None) -> None:
        self._fail("the server closed the connection")
        self.gone.set_result(None)

    def _shake_hands(self) -> None:
        if self._wire.handshake_exc is None:
            self._wire.send_text(_RESET)
        else:
            self._fail(f"the server refused the connection: {self._wire.handshake_exc}")

    def _hear(self, body: bytes) -> None:
        answered = time.perf_counter()
        answer = json.loads(body)
        if answer["type"] != "observation":
            said = body[:200].decode(errors="replace")
            self._fail(f"the server answered {said} where an observation was expected")
        elif self._is_last(answered):
            self._waits.set_result(None)
        elif answer["data"]["done"]:
            self._asked = None
            self._wire.send_text(_RESET)
        else:
            self._ask_step()

    def _is_last(self, answered: float) -> bool:
        """Whether this was the answer that is waited for."""
        if self._note is None:
            return True
        return self._asked is not None and not self._note(self._asked, answered)

    def _ask_step(self) -> None:
        self._wire.send_text(next(self._frames))
        self._asked = time.perf_counter()

    def _flush(self) -> None:
        for data in self._wire.data_to_send():
            if data:
                self._transport.write(data)

    def _fail(self, problem: str) -> None:
        if not self._waits.done():
            self._waits.set_exception(SimulatorError(problem))


async def open_all(url: str, num: int, wire: str = "openenv") -> list[Episode | HttpEpisode]:
    """Connects and resets so many episodes, a few at once."""
    loop, address, make = asyncio.get_running_loop(), urlsplit(url), _maker(url, wire)
    opened: list[Episode | HttpEpisode] = []
    while len(opened) < num:
        batch = [
            loop.create_connection(make, address.hostname, address.port)
            for _ in range(min(_AT_ONCE, num - len(opened)))
        ]
        episodes = [episode for _, episode in await asyncio.gather(*batch)]
        await asyncio.gather(*(episode.wait() for episode in episodes))
        opened += episodes
    return opened


def _maker(url: str, wire: str) -> Callable[[], Episode | HttpEpisode]:
    if wire == "openenv":
        uri = parse_uri(url)
        return lambda: Episode(uri)
    address = urlsplit(url)
    run = address.path.removeprefix("/runs/")
    return lambda: HttpEpisode(HTTP_WIRES[wire](address.netloc, run))


async def close_all(episodes: Sequence[Episode | HttpEpisode]) -> None:
    """Returns when the server has let go of all: the next measurement starts on a quiet machine."""
    for episode in episodes:
        episode.close()
    async with asyncio.timeout(_LONGEST_SECONDS):
        await asyncio.gather(*(episode.gone for episode in episodes))
