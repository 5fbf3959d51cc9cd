"""One episode over HTTP, as `episode.Episode` is one over a socket: the same load, another wire."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Protocol

import httptools

from agentworld.errors import SimulatorError

Fields = dict[str, object]


class Request(bytes):
    """A whole request as it is sent."""

    @classmethod
    def post(cls, host: str, path: str, body: Fields, headers: str = "") -> "Request":
        """A value as JSON; `headers` are whole lines."""
        content = json.dumps(body, separators=(",", ":")).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n{headers}"
            f"content-length: {len(content)}\r\n\r\n"
        )
        return cls(head.encode() + content)


class Words(Protocol):
    """What an episode says on one wire."""

    def begin(self) -> Request:
        """The request that begins another episode."""
        ...

    def has_begun(self, answer: Fields) -> None:
        """Takes in the answer to it."""
        ...

    def step(self) -> Request:
        """The request for the next step."""
        ...

    def is_over(self, answer: Fields) -> bool:
        """Takes in a step's answer; whether the episode is over. Raises KeyError for none."""
        ...


class HttpEpisode(asyncio.Protocol):
    """Asks for the next step as soon as it has the answer to the last one.

    An episode that is over is followed by another. Whatever is no answer ends all by a
    SimulatorError.
    """

    def __init__(self, words: Words) -> None:
        self._words = words
        self._asked: float | None = None
        """When the step was sent that is under way; null while an episode is begun."""
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
        await self._waits

    def close(self) -> None:
        """Hangs up."""
        self._transport.close()

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._listen()
        self._transport.write(self._words.begin())

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, _error: Exception | None) -> None:
        self._fail("the server closed the connection")
        self.gone.set_result(None)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        answered, status, body = time.perf_counter(), self._parser.get_status_code(), self._body
        self._listen()
        try:
            self._hear(answered, json.loads(body))
        except (ValueError, KeyError, TypeError):
            self._fail(f"the server answered {status} {body[:200]!r} where a step was expected")

    def _hear(self, answered: float, answer: Fields) -> None:
        if self._asked is None:
            self._words.has_begun(answer)
            over = False
        else:
            over = self._words.is_over(answer)
        if self._is_last(answered):
            self._waits.set_result(None)
        elif over:
            self._asked = None
            self._transport.write(self._words.begin())
        else:
            self._ask_step()

    def _is_last(self, answered: float) -> bool:
        """Whether this was the answer that is waited for."""
        if self._note is None:
            return True
        return self._asked is not None and not self._note(self._asked, answered)

    def _ask_step(self) -> None:
        self._transport.write(self._words.step())
        self._asked = time.perf_counter()

    def _listen(self) -> None:
        self._body, self._parser = b"", httptools.HttpResponseParser(self)

    def _fail(self, problem: str) -> None:
        if not self._waits.done():
            self._waits.set_exception(SimulatorError(problem))
