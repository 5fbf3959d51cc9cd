import asyncio
import json
import socket

import pytest
from uvicorn import Server

import make.access
import make.service
from agentworld.client.simulator import SIMULATOR_HEADER, SimulatorClient
from agentworld.errors import SimulatorError
from agentworld.http.protection import Limits
from fakes.rough_client import (
    answers,
    ask,
    connected,
    read_status,
    request,
    send_all,
    send_for_ever,
    until_closed,
)
from make import records
from waiting import wait_for

SIMULATOR = records.manifest().digest
CHUNKED = b"POST /steps HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
KEY = f"Authorization: {make.access.bearer('acme-agent')}"
CHUNK = b"3e8\r\n" + b"x" * 1000 + b"\r\n"


def reply(url, *parts) -> bytes:
    """The service's response to these bytes until it closes."""
    with connected(url) as wire:
        for part in parts:
            send_all(wire, part)
        return until_closed(wire)


def refusal(answer: bytes) -> tuple[int, str]:
    """The status and the message of a refusal by the service."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"{SIMULATOR_HEADER}: {SIMULATOR}".encode() in head
    assert b"connection: close" in head
    return int(head.split()[1]), json.loads(body)["error"]["message"]


def drip(wire: socket.socket, data: bytes) -> bytes:
    """Sends the data byte by byte until the service responds or hangs up; returns its response."""
    wire.settimeout(0.05)
    for index in range(len(data)):
        send_all(wire, data[index : index + 1])
        try:
            return wire.recv(2**16)
        except TimeoutError:
            continue
        except ConnectionError:
            return b""
    raise AssertionError("it took all of it")


def test_a_body_with_too_large_a_content_length_is_refused_unread(listen):
    url = listen(body_bytes=1000)
    head = b"POST /steps HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n"
    assert refusal(reply(url, head)) == (413, "a body has at most 1,000 bytes; send less")


@pytest.mark.parametrize("path", [b"/steps", b"/runs"])
def test_a_chunked_body_above_the_limit_is_refused(listen, path):
    url = listen(body_bytes=2500)
    assert refusal(reply(url, CHUNKED.replace(b"/steps", path), *[CHUNK] * 3))[0] == 413


def test_a_client_that_keeps_sending_a_refused_body_still_gets_the_refusal(listen):
    url = listen(body_bytes=10_000, linger_seconds=60)
    with connected(url) as wire:
        wire.sendall(CHUNKED + CHUNK * 11)
        assert refusal(until_closed(wire))[0] == 413
        for _ in range(5):
            wire.sendall(CHUNK)  # fails if the service has closed the connection


@pytest.mark.waits
def test_a_client_that_never_stops_sending_a_refused_body_is_disconnected(listen):
    url = listen(body_bytes=10_000, linger_seconds=1)
    with connected(url) as wire:
        wire.sendall(CHUNKED)
        assert send_for_ever(wire, b"10000\r\n" + bytes(2**16) + b"\r\n") < 30 * 2**20


def test_a_body_of_the_maximum_size_is_accepted(listen):
    url = listen(body_bytes=1000)
    assert b"the request is not JSON" in ask(url, "/steps", b"x" * 1000, method="POST")


def test_the_simulator_client_raises_the_body_limit_as_an_input_error(listen):
    url = listen(body_bytes=10_000)

    async def send():
        client = SimulatorClient(url)
        await client.open_run(make.service.OPENING)
        episode = await client.reset(records.task())
        try:
            await client.step(episode, "x" * 11_000)
        finally:
            await client.close()

    with pytest.raises(SimulatorError, match="at most 10,000 bytes") as error:
        asyncio.run(send())
    assert (error.value.kind, error.value.retryable) == ("input", False)


@pytest.mark.waits
@pytest.mark.parametrize("path", ["/steps", "/runs"])
def test_a_body_that_does_not_arrive_is_408(listen, path):
    url = listen(body_seconds=0.2)
    body = request(path, b"x" * 100, method="POST")[:-1]
    assert refusal(reply(url, body)) == (408, "the request did not arrive in 0.2 s; try again")


@pytest.mark.waits
def test_a_body_sent_too_slowly_is_408(listen):
    url = listen(body_seconds=0.3)
    with connected(url) as wire:
        wire.sendall(b"POST /steps HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
        assert refusal(drip(wire, b"x" * 999))[0] == 408


@pytest.mark.waits
def test_an_incomplete_body_that_no_endpoint_reads_closes_the_connection(listen):
    url = listen(body_seconds=2)  # the answer comes earlier
    answer = reply(url, request("/nothing", b"x" * 100, method="POST")[:-1])
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.waits
@pytest.mark.parametrize("data", [b"", b"GET /hea"], ids=["none", "half"])
def test_a_connection_without_a_whole_head_is_closed(listen, data):
    assert reply(listen(head_seconds=0.2), data) == b""


@pytest.mark.waits
def test_a_head_sent_too_slowly_closes_the_connection(listen):
    with connected(listen(head_seconds=0.3)) as wire:
        assert drip(wire, request("/health", b"", f"A: {'x' * 100}")) == b""


@pytest.mark.waits
def test_a_slow_second_head_closes_the_connection(listen):
    with connected(listen(head_seconds=2)) as wire:  # the first head arrives earlier
        wire.sendall(request())
        assert read_status(wire) == 200
        assert drip(wire, request("/health", b"", f"A: {'x' * 100}")) == b""


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01 hello",
        b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: " + b"x" * 2000,
        b"GET /" + b"x" * 2000,
        b"GET / HTTP/1.1\r\n" + b"A: x\r\n" * 200,
        CHUNKED + b"1\r\na\r\n0\r\n" + b"A: x\r\n" * 200,
    ],
    ids=["bytes", "lines", "long head", "long path", "many fields", "at the end"],
)
def test_invalid_http_or_too_large_a_head_is_400(listen, data):
    url = listen(head_bytes=1000)
    assert reply(url, data).startswith(b"HTTP/1.1 400 ")
    assert answers(url)


def test_a_refusal_follows_the_answer_to_an_earlier_request(listen):
    responses = reply(listen(), request() + b"no request\r\n\r\n").split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in responses] == [b"200", b"400"]


def test_pipelined_requests_are_answered_in_order(listen):
    with connected(listen()) as wire:
        wire.sendall(request() * 9 + request("/nothing", b"", "Connection: close"))
        assert [answer[:3] for answer in until_closed(wire).split(b"HTTP/1.1 ")[1:]] == [
            *[b"200"] * 9,
            b"404",
        ]


@pytest.mark.waits
def test_thousands_of_pipelined_requests_do_not_block_other_clients(listen):
    url = listen()
    last = request("/nothing", b"", "Connection: close")
    with connected(url) as wire:
        wire.sendall(request() * 5000 + last)
        assert answers(url)
        assert until_closed(wire).count(b"HTTP/1.1 200 ") == 5000


@pytest.mark.waits
def test_an_unread_answer_closes_the_connection(listen, log_lines):
    url = listen(unread_seconds=0.5)
    with connected(url, reads=False) as wire:
        wire.sendall(request("/openapi.json") * 10)
        wait_for(lambda: "unread 1" in "".join(log_lines()))
        assert len(until_closed(wire)) < 50_000
    assert answers(url)


@pytest.mark.waits
def test_a_stopping_service_waits_for_an_incomplete_body_only_until_its_timeout(
    tmp_path, log_lines
):
    app, limits = make.service.service(tmp_path).app, Limits(body_seconds=1.0)
    service = make.service.listening(app, limits, Server)
    url = service.__enter__()
    with connected(url) as wire:
        wire.sendall(request("/steps", b"x" * 100, method="POST")[:-1])
        assert all(answers(url) for _ in range(5))
        service.__exit__(None, None, None)
        assert refusal(until_closed(wire))[0] == 408
    assert "Traceback" not in "".join(log_lines())


def chunked_request(path: str, body: bytes, head: str = "", trailer: str = "") -> bytes:
    """A request in chunks, with a field in its head and another one after its body."""
    lines = f"POST {path} HTTP/1.1", "Host: a", "Content-Type: application/json", head
    fields = [*filter(None, lines), "Connection: close", "Transfer-Encoding: chunked", "", ""]
    last = f"{trailer}\r\n\r\n".encode() if trailer else b"\r\n"
    return "\r\n".join(fields).encode() + b"%x\r\n%b\r\n0\r\n" % (len(body), body) + last


@pytest.mark.parametrize(
    ("head", "trailer", "status"),
    [
        ("", KEY, 401),
        ("", f"{KEY}\r\nA: x", 401),
        (KEY, "", 200),
        (KEY, KEY, 200),
        (KEY, "Authorization: Bearer nobody\r\nHost: b", 200),
        ("Authorization: Bearer nobody", KEY, 401),
    ],
    ids=["alone", "with another", "none", "twice", "another", "of nobody's"],
)
def test_a_trailer_after_the_body_is_no_credential(tmp_path, head, trailer, status):
    access = make.access.Checked(tmp_path)
    body = make.service.OPENING.model_dump_json().encode()
    with make.service.listening(make.service.service(tmp_path, access=access).app) as url:
        answer = reply(url, chunked_request("/runs", body, head, trailer))
    assert answer.split()[1] == str(status).encode()


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/runs/r/v1/embeddings?a=1"])
def test_a_refusal_on_an_openai_path_has_the_openai_error_format(listen, path):
    answer = reply(listen(body_bytes=1000), request(path, b"x" * 1001, method="POST"))
    head, _, body = answer.partition(b"\r\n\r\n")
    error = json.loads(body)["error"]
    assert int(head.split()[1]) == 413
    assert error.keys() == {"message", "type", "param", "code"}
    assert (error["type"], error["code"]) == ("invalid_request_error", "input")
    assert b"x-should-retry: false" in head
