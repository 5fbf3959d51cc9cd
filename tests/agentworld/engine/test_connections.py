"""Failures of connections, with a server that produces them."""

import asyncio
import contextlib
import re
import socket
import struct
import threading

import pytest
import uvloop

from agentworld.engine.base import CompletionRequest
from agentworld.engine.openai import OpenAIEngine
from agentworld.errors import EngineError
from agentworld.records.simulator import Sampling

pytestmark = pytest.mark.waits

ASKED = [{"role": "user", "content": "ls"}]
NAME = b"?" * 32  # of the request, filled in by the server
ANSWER = (
    b'{"id": "%s", "model": "m", "usage": {"prompt_tokens": 3, "completion_tokens": 2},'
    b' "choices": [{"message": {"content": "besa"}, "finish_reason": "stop"}]}'
) % NAME
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
NAMED = re.compile(rb"x-request-id: (\w{32})")
WHOLE = HEAD % len(ANSWER) + ANSWER


@contextlib.asynccontextmanager
async def serving(*scripts):
    """The URL of a server that takes one of these for each connection: pieces, then the end."""
    left, serving = iter(scripts), []

    async def serve(reader, writer):
        serving.append(asyncio.current_task())
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(LENGTH.search(head)[1]))
        name = NAMED.search(head)[1]
        for piece in next(left):
            if reader.at_eof():
                break
            writer.write(piece.replace(NAME, name))
            await asyncio.sleep(0.02)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    await asyncio.gather(*serving)


def connect(url, *, concurrency=1, **settings):
    kind = "transformers-serve"
    return OpenAIEngine(url, "m", kind=kind, concurrency=concurrency, **settings)


def ask(*scripts, timeout_seconds=20.0):
    """The responses to consecutive requests, or the kinds of their errors."""

    async def work():
        async with serving(*scripts) as url:
            engine = connect(url, timeout_seconds=timeout_seconds)
            said = [await say(engine) for _ in scripts]
            await engine.close()
            return said

    return asyncio.run(work())


async def say(engine):
    try:
        return (await engine.complete(CompletionRequest(ASKED, Sampling()))).text
    except EngineError as error:
        return error.kind


def test_an_answer_sent_in_several_pieces_is_read():
    assert ask([WHOLE[:30], WHOLE[30:90], WHOLE[90:]]) == ["besa"]


BROKEN = {
    "nothing": [],
    "half of a head": [HEAD[:20]],
    "no http": [b"besa\r\n\r\n"],
    "no body": [HEAD % len(ANSWER)],
    "half of a body": [WHOLE[:-9]],
    "half of a chunk": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n", ANSWER],
    "another encoding": [b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", ANSWER],
}


@pytest.mark.parametrize("pieces", BROKEN.values(), ids=BROKEN.keys())
def test_a_connection_that_breaks_is_an_error_and_the_next_request_is_answered(pieces):
    assert ask(pieces, [WHOLE]) == ["engine", "besa"]


SLOW = {
    "nothing": [b""] * 200,
    "byte by byte": [WHOLE[place : place + 1] for place in range(len(WHOLE))],
    "blanks": [HEAD % 999, *[b" "] * 200],
}


@pytest.mark.parametrize("pieces", SLOW.values(), ids=SLOW.keys())
def test_the_timeout_applies_to_the_whole_answer(pieces):
    assert ask(pieces, [WHOLE], timeout_seconds=2.0) == ["slow", "besa"]


@pytest.mark.parametrize("pieces", [[WHOLE + WHOLE], [WHOLE, WHOLE]])
def test_an_unrequested_response_does_not_answer_the_next_request(pieces):
    first, second = ask([*pieces, *[b""] * 9], [WHOLE.replace(b"besa", b"kolu")])
    assert first == "besa"
    assert second != "besa"


def test_an_unreachable_engine_is_an_engine_error():
    async def work():
        async with serving() as url:
            gone = url
        return await say(connect(gone))

    assert asyncio.run(work()) == "engine"


def test_a_connection_reset_during_its_opening_is_an_engine_error():
    def reset_all(listener):
        with contextlib.suppress(OSError):  # until the listener is closed
            while True:
                connection, _ = listener.accept()
                no_linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_linger)
                connection.close()

    async def work(url):
        # One of six comes at the worst moment of uvloop, on which the service runs.
        return {await say(connect(url)) for _ in range(300)}

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=reset_all, args=[listener])
        thread.start()
        try:
            kinds = uvloop.run(work(f"http://127.0.0.1:{listener.getsockname()[1]}"))
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
    assert kinds == {"engine"}


class Counting:
    """A server that answers every request of every connection, and counts those open."""

    def __init__(self):
        self.opened = self.open = 0

    async def serve(self, reader, writer):
        self.opened += 1
        self.open += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(int(LENGTH.search(head)[1]))
                writer.write(WHOLE.replace(NAME, NAMED.search(head)[1]))
        self.open -= 1
        writer.close()


@contextlib.asynccontextmanager
async def counted():
    """A counting server and its URL."""
    counting = Counting()
    server = await asyncio.start_server(counting.serve, "127.0.0.1", 0)
    yield counting, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with asyncio.timeout(60):
        while counting.open:
            await asyncio.sleep(0.01)
    server.close()


def test_connections_are_reused_and_limited_to_the_concurrency():
    async def work():
        async with counted() as (counting, url):
            engine = connect(url, concurrency=3)
            for _ in range(5):
                assert set(await asyncio.gather(*(say(engine) for _ in range(9)))) == {"besa"}
            assert (counting.opened, counting.open) == (3, 3)
            await engine.close()

    asyncio.run(work())


async def give_up(engine, num_turns):
    """Asks, and cancels that after so many turns of the event loop; whether it was in time."""
    asking = asyncio.create_task(say(engine))
    for _ in range(num_turns):
        await asyncio.sleep(0)
    in_time = asking.cancel()
    await asyncio.wait({asking})
    return in_time


def test_a_request_is_answered_after_a_cancellation_in_any_event_loop_turn():
    """Also by a connection that was new, and the connection that was left is closed."""

    async def work():
        num_turns, in_time = 0, True
        async with counted() as (_, url):
            while in_time:
                engine = connect(url, timeout_seconds=20.0)
                in_time = await give_up(engine, num_turns)
                assert await say(engine) == "besa", num_turns
                await engine.close()
                num_turns += 1
        return num_turns

    assert asyncio.run(work()) > 10
