"""A service on the loopback, and clients that are slow, rude, or too many."""

import gc
import re

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.frames import Opcode
from websockets.server import ServerProtocol

import make.service
from agentworld.client.simulator import SIMULATOR_HEADER
from agentworld.http.connection import Connection
from agentworld.http.protection import Limits
from fakes.rough_client import (
    answers,
    ask,
    connected,
    frame,
    handshake,
    read_status,
    request,
    reset,
    send_all,
    until,
    until_closed,
    upgraded,
)
from make import records
from waiting import wait_for

pytestmark = pytest.mark.waits

SIMULATOR = records.manifest().digest
CHUNKED = b"POST /steps HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
LARGE_CHUNK = b"11170\r\n" + b"x" * 70_000 + b"\r\n"


def test_a_connection_above_the_limit_gets_503_and_the_others_continue(listen):
    url = listen(connections=2)
    with connected(url) as first, connected(url) as second:
        for wire in (first, second):
            wire.sendall(request())
            assert read_status(wire) == 200
        response = httpx.get(f"{url}/health")
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        assert response.headers[SIMULATOR_HEADER] == SIMULATOR
        assert response.json()["error"]["kind"] == "capacity"
        first.sendall(request())
        assert read_status(first) == 200
    wait_for(lambda: answers(url))


def test_a_websocket_above_the_limit_gets_503(listen):
    url = listen(connections=1)
    path = f"/runs/{make.service.run(url)}/ws"
    with upgraded(url, path), connected(url) as second:
        second.sendall(handshake(path))
        assert until_closed(second).startswith(b"HTTP/1.1 503 ")


def test_hundreds_of_connections_above_the_limit_do_not_affect_an_open_connection(listen):
    url = listen(connections=2)
    with connected(url) as first:
        first.sendall(request())
        assert read_status(first) == 200
        crowd = [connected(url) for _ in range(300)]
        for connection in crowd:
            connection.__enter__()
        for connection in crowd:
            connection.__exit__(None, None, None)
        first.sendall(request())
        assert read_status(first) == 200


def test_a_full_body_buffer_refuses_large_bodies_and_accepts_small_bodies(
    listen,
):
    url = listen(buffer_bytes=100_000)
    with connected(url) as first, connected(url) as second:
        first.sendall(CHUNKED + LARGE_CHUNK)
        wait_for(lambda: is_full(url))
        second.sendall(CHUNKED + LARGE_CHUNK)
        assert until_closed(second).startswith(b"HTTP/1.1 503 ")
        assert answers(url)
        assert b" 422 " in ask(url, "/steps", b"x" * 1000, method="POST")
    wait_for(lambda: not is_full(url))


def test_a_processed_large_message_uses_no_buffer_space(listen):
    url = listen(buffer_bytes=100_000)
    path = f"/runs/{make.service.run(url)}/ws"
    with upgraded(url, path) as first, upgraded(url, path) as second:
        for wire in (first, second):
            wire.sendall(frame("x" * 80_000))
            assert b"the frame is not JSON" in wire.recv(2**16)


def is_full(url) -> bool:
    return b" 503 " in ask(url, "/steps", b"x" * 70_000, method="POST")


def test_a_full_body_buffer_refuses_a_large_message(listen):
    url = listen(buffer_bytes=100_000)
    with (
        connected(url) as first,
        upgraded(url, f"/runs/{make.service.run(url)}/ws") as second,
    ):
        first.sendall(CHUNKED + LARGE_CHUNK)
        wait_for(lambda: is_full(url))
        send_all(second, frame("x" * 80_000)[:-1])
        assert until_closed(second) == b""


def test_hundreds_of_refused_bodies_are_one_line_in_the_log(listen, log_lines):
    url = listen(body_bytes=10)
    for _ in range(250):
        assert b" 413 " in ask(url, "/steps", b"x" * 11, method="POST")
    lines = [line for line in log_lines() if "protection" in line]
    assert len(lines) == 1
    assert "Traceback" not in "".join(log_lines())


@pytest.mark.parametrize("method", ["POST", "CONNECT", "HEAD"])
@pytest.mark.parametrize("prefix", [b"", request()], ids=["first", "second"])
def test_a_request_with_an_invalid_body_leaves_no_traceback(listen, log_lines, method, prefix):
    url = listen()
    bad_request = CHUNKED.replace(b"POST", method.encode()) + b"zz\r\n"
    for _ in range(40):
        with connected(url) as wire:
            send_all(wire, prefix + bad_request)
            reset(wire)
    with connected(url) as wire:
        send_all(wire, prefix + bad_request)
        assert b"HTTP/1.1 400 " in until_closed(wire)
    assert answers(url)
    assert "Traceback" not in "".join(log_lines())


@pytest.mark.parametrize(
    "end",
    [b"", frame(b"", Opcode.CLOSE), b"\xff", frame("x")[:-1]],
    ids=["silence", "good-bye", "garbage", "half a frame"],
)
def test_a_closed_connection_leaves_no_objects_in_memory(listen, end):
    url = listen(body_seconds=0.5, ping_seconds=0.5, pong_seconds=0.5, linger_seconds=0.1)
    for path in ("/nothing", f"/runs/{make.service.run(url)}/ws"):
        with connected(url) as wire:
            wire.sendall(handshake(path))
            until(wire, b"\r\n\r\n")
            send_all(wire, end)
            until_closed(wire)
    wait_for(lambda: not live_objects(Connection, ServerProtocol))


@pytest.mark.parametrize(
    "data",
    [
        b"GET /hea",
        request("/steps", b"x", method="POST")[:-1],
        request() * 2,
        handshake("/nothing").replace(b"Key", b"Lock"),
        b"\xff",
    ],
    ids=["head", "body", "two requests", "handshake", "garbage"],
)
def test_a_reset_connection_leaves_no_objects_in_memory(listen, data):
    url = listen(body_seconds=0.5, linger_seconds=0.1)
    with connected(url) as wire:
        wire.sendall(data)
        reset(wire)
    ask(url, "/nothing", b"x")
    wait_for(lambda: not live_objects(Connection, ServerProtocol))


def live_objects(*kinds: type) -> list[object]:
    gc.collect()
    return [item for item in gc.get_objects() if issubclass(type(item), kinds)]


ROUTES = ["/runs", "/episodes", "/steps", "/health", "/runs/a/ws", "/runs/a/v1/models", "/%00"]
BODIES = st.binary(max_size=200) | st.text(alphabet='{}[]":,0aé\ud800').map(
    lambda text: text.encode(errors="surrogatepass")
)
REQUESTS = st.builds(
    lambda path, body, method, field: request(path, body, field, method=method),
    st.sampled_from(ROUTES),
    BODIES,
    st.sampled_from(["GET", "POST", "PUT", "HEAD", "OPTIONS", "CONNECT"]),
    st.sampled_from(
        [
            "A: b",
            "Content-Type: application/json",
            "Transfer-Encoding: chunked",
            "Connection: upgrade\r\nUpgrade: h2c",
            "Connection: close",
            "Expect: 100-continue",
            "Content-Length: 99999999999999999999999",
            "Content-Length: 99999999999",
        ]
    ),
)
FRAMES = st.builds(
    lambda data, opcode, last: frame(data, opcode, last=last or opcode >= Opcode.CLOSE),
    st.binary(max_size=20) | st.sampled_from([b'{"type": "reset"}', b'{"type": "step"}', b"[[[["]),
    st.sampled_from(list(Opcode)),
    st.booleans(),
)
PARTS = st.lists(
    REQUESTS | BODIES | st.builds(lambda data: data[: len(data) // 2], REQUESTS), max_size=4
)
SHORT = Limits(
    body_bytes=10_000,
    head_bytes=2_000,
    head_seconds=1,
    body_seconds=0.5,
    ping_seconds=0.5,
    pong_seconds=0.5,
    linger_seconds=0.1,
    check_seconds=0.05,
)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    app = make.service.service(tmp_path_factory.mktemp("service")).app
    with make.service.listening(app, SHORT) as url:
        yield url


@pytest.fixture(scope="module")
def run_path(address):
    return f"/runs/{make.service.run(address)}/ws"


fuzzed = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@fuzzed
@given(parts=PARTS, is_reset=st.booleans())
def test_arbitrary_bytes_cause_no_server_error_and_block_no_other_client(
    address, log_lines, parts, is_reset
):
    with connected(address) as wire:
        for part in [*parts, request("/health", b"", "Connection: close")]:
            send_all(wire, part)
        response = reset(wire) if is_reset else until_closed(wire)
    assert answers(address)
    assert not re.search(rb"HTTP/1.1 5", response or b"")
    assert "Traceback" not in "".join(log_lines())


@fuzzed
@given(parts=st.lists(FRAMES | BODIES, max_size=6), is_reset=st.booleans())
def test_arbitrary_frames_cause_no_traceback_and_block_no_other_client(
    address, run_path, log_lines, parts, is_reset
):
    with upgraded(address, run_path) as wire:
        for part in [*parts, frame(b"", Opcode.CLOSE)]:
            send_all(wire, part)
        if is_reset:
            reset(wire)
        else:
            until_closed(wire)
    assert answers(address)
    assert "Traceback" not in "".join(log_lines())
