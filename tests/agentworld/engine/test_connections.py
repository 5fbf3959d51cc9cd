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

MESSAGES = [{"role": "user", "content": "ls"}]
REQUEST_ID = b"?" * 32  # The server fills in the ID of the request.
ANSWER = (
    b'{"id": "%s", "model": "m", "usage": {"prompt_tokens": 3, "completion_tokens": 2},'
    b' "choices": [{"message": {"content": "besa"}, "finish_reason": "stop"}]}'
) % REQUEST_ID
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
CONTENT_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
REQUEST_ID_PATTERN = re.compile(rb"x-request-id: (\w{32})")
RESPONSE = HEAD % len(ANSWER) + ANSWER


@contextlib.asynccontextmanager
async def serving(*scripts):
    """The URL of a server that sends the pieces of one script on each connection and closes it."""
    remaining_scripts, tasks = iter(scripts), []

    async def serve(reader, writer):
        tasks.append(asyncio.current_task())
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(CONTENT_LENGTH.search(head)[1]))
        request_id = REQUEST_ID_PATTERN.search(head)[1]
        for piece in next(remaining_scripts):
            if reader.at_eof():
                break
            writer.write(piece.replace(REQUEST_ID, request_id))
            await asyncio.sleep(0.02)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    await asyncio.gather(*tasks)


def connect(url, *, concurrency=1, **settings):
    kind = "transformers-serve"
    return OpenAIEngine(url, "m", kind=kind, concurrency=concurrency, **settings)


def ask(*scripts, timeout_seconds=20.0):
    """The responses to consecutive requests, or the kinds of their errors."""

    async def work():
        async with serving(*scripts) as url:
            engine = connect(url, timeout_seconds=timeout_seconds)
            results = [await complete(engine) for _ in scripts]
            await engine.close()
            return results

    return asyncio.run(work())


async def complete(engine):
    try:
        return (await engine.complete(CompletionRequest(MESSAGES, Sampling()))).text
    except EngineError as error:
        return error.kind


def test_an_answer_sent_in_several_pieces_is_read():
    assert ask([RESPONSE[:30], RESPONSE[30:90], RESPONSE[90:]]) == ["besa"]


BROKEN_RESPONSES = {
    "nothing": [],
    "half of a head": [HEAD[:20]],
    "no http": [b"besa\r\n\r\n"],
    "no body": [HEAD % len(ANSWER)],
    "half of a body": [RESPONSE[:-9]],
    "half of a chunk": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n", ANSWER],
    "another encoding": [b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", ANSWER],
}


@pytest.mark.parametrize("pieces", BROKEN_RESPONSES.values(), ids=BROKEN_RESPONSES.keys())
def test_a_connection_that_breaks_is_an_error_and_the_next_request_is_answered(pieces):
    assert ask(pieces, [RESPONSE]) == ["engine", "besa"]


SLOW_RESPONSES = {
    "nothing": [b""] * 200,
    "byte by byte": [RESPONSE[index : index + 1] for index in range(len(RESPONSE))],
    "blanks": [HEAD % 999, *[b" "] * 200],
}


@pytest.mark.parametrize("pieces", SLOW_RESPONSES.values(), ids=SLOW_RESPONSES.keys())
def test_the_timeout_applies_to_the_whole_answer(pieces):
    assert ask(pieces, [RESPONSE], timeout_seconds=2.0) == ["slow", "besa"]


@pytest.mark.parametrize("pieces", [[RESPONSE + RESPONSE], [RESPONSE, RESPONSE]])
def test_an_unrequested_response_does_not_answer_the_next_request(pieces):
    first, second = ask([*pieces, *[b""] * 9], [RESPONSE.replace(b"besa", b"kolu")])
    assert first == "besa"
    assert second != "besa"


def test_an_unreachable_engine_is_an_engine_error():
    async def work():
        async with serving() as url:
            closed_url = url
        return await complete(connect(closed_url))

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
        # One reset in six comes at the critical moment of uvloop, on which the service runs.
        return {await complete(connect(url)) for _ in range(300)}

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=reset_all, args=[listener])
        thread.start()
        try:
            kinds = uvloop.run(work(f"http://127.0.0.1:{listener.getsockname()[1]}"))
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
    assert kinds == {"engine"}


class ConnectionCounter:
    """A server that answers every request, and counts the connections made and those open."""

    def __init__(self):
        self.opened = self.open = 0

    async def serve(self, reader, writer):
        self.opened += 1
        self.open += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(int(CONTENT_LENGTH.search(head)[1]))
                writer.write(RESPONSE.replace(REQUEST_ID, REQUEST_ID_PATTERN.search(head)[1]))
        self.open -= 1
        writer.close()


@contextlib.asynccontextmanager
async def counting_server():
    """A counting server and its URL."""
    counter = ConnectionCounter()
    server = await asyncio.start_server(counter.serve, "127.0.0.1", 0)
    yield counter, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with asyncio.timeout(60):
        while counter.open:
            await asyncio.sleep(0.01)
    server.close()


def test_connections_are_reused_and_limited_to_the_concurrency():
    async def work():
        async with counting_server() as (counter, url):
            engine = connect(url, concurrency=3)
            for _ in range(5):
                assert set(await asyncio.gather(*(complete(engine) for _ in range(9)))) == {"besa"}
            assert (counter.opened, counter.open) == (3, 3)
            await engine.close()

    asyncio.run(work())


async def give_up(engine, num_turns):
    """Cancels a request after some turns of the event loop; returns whether it was unfinished."""
    task = asyncio.create_task(complete(engine))
    for _ in range(num_turns):
        await asyncio.sleep(0)
    is_canceled = task.cancel()
    await asyncio.wait({task})
    return is_canceled


def test_a_request_is_answered_after_a_cancellation_in_any_event_loop_turn():
    """New connections are covered too, and an abandoned connection is closed."""

    async def work():
        num_turns, is_canceled = 0, True
        async with counting_server() as (_, url):
            while is_canceled:
                engine = connect(url, timeout_seconds=20.0)
                is_canceled = await give_up(engine, num_turns)
                assert await complete(engine) == "besa", num_turns
                await engine.close()
                num_turns += 1
        return num_turns

    assert asyncio.run(work()) > 10
