"""A connection between a scripted transport and a scripted protocol."""

import asyncio
import socket

from agentworld.http.connection import CURRENT, Connection
from agentworld.http.limited_app import LimitedApp
from agentworld.http.protection import Guard, Limits


class Wire(asyncio.Transport):
    """The transport of a client that reads nothing."""

    def __init__(self, unread: int = 0) -> None:
        super().__init__({"socket": socket.socket()})
        self.unread, self.is_aborted, self.written = unread, False, b""

    def get_write_buffer_size(self) -> int:
        return self.unread

    def write(self, data) -> None:
        self.written += data

    def abort(self) -> None:
        self.is_aborted = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Recorder(asyncio.Protocol):
    """Keeps the data that it receives."""

    def __init__(self) -> None:
        self.received = b""

    def connection_made(self, transport) -> None:
        self.transport = transport

    def data_received(self, data) -> None:
        self.received += data


async def run_loop() -> None:
    """Runs the event loop twice."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def connect(wire: Wire, recorder: Recorder, **limits) -> Connection:
    guard = Guard(None, Limits(**limits), lambda _kind: None)
    connection = Connection(guard, lambda: recorder)
    connection.connection_made(wire)
    return connection


def test_no_frame_is_parsed_before_the_handshake_was_answered():
    async def play():
        http, frames = Recorder(), Recorder()
        connection = connect(Wire(), http)
        connection.begin("a handshake")
        http.transport.set_protocol(frames)
        connection.data_received(b"early")
        await run_loop()
        assert frames.received == b""
        http.transport.write(b"101")
        await run_loop()
        assert frames.received == b"early"

    asyncio.run(play())


def test_unread_answers_above_the_buffer_limit_abort_the_connection():
    async def play():
        wires = [Wire(unread=60), Wire(unread=60)]
        for wire in wires:
            connect(wire, Recorder(), buffer_bytes=100).pause_writing()
        assert [wire.is_aborted for wire in wires] == [False, False]
        large_wire = Wire(unread=101)
        connect(large_wire, Recorder(), buffer_bytes=100).pause_writing()
        assert large_wire.is_aborted

    asyncio.run(play())


def test_a_client_that_reads_no_answers_is_not_read():
    async def play():
        recorder = Recorder()
        connection = connect(Wire(), recorder)
        connection.pause_writing()
        connection.data_received(b"more")
        await run_loop()
        assert recorder.received == b""
        connection.resume_writing()
        await run_loop()
        assert recorder.received == b"more"

    asyncio.run(play())


def test_a_service_limits_connections_and_aborts_a_large_excess():
    async def play():
        guard = Guard(None, Limits(connections=1), lambda _kind: None)
        wires = [Wire() for _ in range(70)]
        connections = [Connection(guard, Recorder) for _ in wires]
        for connection, wire in zip(connections, wires, strict=True):
            connection.connection_made(wire)
        assert [connection.is_extra for connection in connections] == [False] + [True] * 69
        assert [wire.is_aborted for wire in wires] == [False] * 65 + [True] * 5

    asyncio.run(play())


def test_an_endpoint_that_waits_for_a_disconnect_has_no_timeout():
    responses = []

    async def endpoint(_scope, receive, _send):
        assert await receive() == request
        assert await receive() == disconnect

    async def receive():
        if len(messages) == 1:
            await run_loop()
        return messages.pop(0)

    async def send(message):
        responses.append(message)

    async def play():
        connection = connect(Wire(), Recorder(), body_seconds=0.0)
        CURRENT.set(connection)
        app = LimitedApp(endpoint, connection.guard)
        await app({"type": "http", "path": "/", "headers": []}, receive, send)

    request = {"type": "http.request", "body": b"", "more_body": False}
    disconnect = {"type": "http.disconnect"}
    messages = [request, disconnect]
    asyncio.run(play())
    assert responses == []
