import json
import struct
import time

import pytest
from uvicorn import Server
from websockets.frames import Opcode

import make.service
from agentworld.http.protection import Limits
from fakes.rough_client import (
    answers,
    connected,
    frame,
    handshake,
    request,
    send_after,
    send_all,
    until,
    until_closed,
    upgraded,
)
from waiting import wait_for

pytestmark = pytest.mark.waits

STATE = frame('{"type": "state"}')
GOOD_BYE = frame('{"type": "close"}')
CLOSE_ANSWER = b"\x88\x02\x03\xe8"
CLOSE = frame(b"", Opcode.CLOSE)


def run_path(url) -> str:
    """The WebSocket path of an open run."""
    return f"/runs/{make.service.run(url)}/ws"


def reply(url, *parts) -> bytes:
    """A WebSocket's response to these bytes until it closes."""
    with upgraded(url, run_path(url)) as wire:
        for part in parts:
            send_all(wire, part)
        return until_closed(wire)


def read_answers(url, *parts) -> bytes:
    """A WebSocket's response to these bytes until the client closes it."""
    with upgraded(url, run_path(url)) as wire:
        wire.sendall(b"".join(parts) + GOOD_BYE)
        return until(wire, CLOSE_ANSWER)


def close_code(answer: bytes) -> int:
    """The code of the last close frame."""
    index = answer.rindex(b"\x88")
    code: int = struct.unpack("!H", answer[index + 2 : index + 4])[0]
    return code


def test_a_message_that_declares_too_large_a_size_is_refused_at_once(listen):
    url = listen(body_bytes=1000)
    assert close_code(reply(url, frame("x" * 1001)[:10])) == 1009


def test_a_client_that_keeps_sending_a_refused_message_still_gets_the_refusal(listen):
    with upgraded(url := listen(body_bytes=1000), run_path(url)) as wire:
        wire.sendall(frame("x" * 20_000)[:5_000])
        send_after(wire, *[b"x" * 1000] * 5)
        assert close_code(until_closed(wire)) == 1009


def test_a_message_of_the_maximum_size_is_accepted(listen):
    answer = read_answers(listen(body_bytes=1000), frame("x" * 1000))
    assert b"the frame is not JSON" in answer


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\xff" * 100, 1002),
        (STATE + b"\xff" * 100, 1002),
        (b"\x81\x01x", 1002),
        (frame(b"\xff"), 1007),
        (frame(b"\xc3", last=False) + frame(b"\xc3", Opcode.CONT), 1007),
        (frame("x", Opcode.CONT), 1002),
    ],
    ids=["bytes", "behind a frame", "unmasked", "no text", "no text in parts", "no beginning"],
)
def test_an_invalid_frame_closes_the_connection(listen, log_lines, data, code):
    url = listen()
    assert close_code(reply(url, data)) == code
    assert answers(url)
    assert "Traceback" not in "".join(log_lines())


def test_a_close_frame_after_invalid_text_leaves_no_traceback(listen, log_lines):
    reply(listen(), frame(b"\xff") + CLOSE)
    assert "Traceback" not in "".join(log_lines())


def test_a_fragmented_message_is_read_as_one_message(listen):
    parts = [frame('{"type"', last=False), frame(': "sta', Opcode.CONT, last=False)]
    assert b"step_count" in read_answers(listen(), *parts, frame('te"}', Opcode.CONT))


def test_a_large_message_in_many_fragments_is_accepted(listen):
    part = frame("x" * 4096, Opcode.CONT, last=False)
    answer = read_answers(listen(), frame("", last=False), *[part] * 1000, frame("", Opcode.CONT))
    assert b"the frame is not JSON" in answer


def test_the_size_limit_applies_to_each_message_separately(listen):
    with upgraded(url := listen(body_bytes=1000), run_path(url)) as wire:
        for _ in range(100):
            wire.sendall(frame("x" * 1000))
            assert b"the frame is not JSON" in wire.recv(2**16)
        wire.sendall(GOOD_BYE)
        assert until(wire, CLOSE_ANSWER)


def test_a_message_in_endless_fragments_closes_the_connection(listen, log_lines):
    parts = [frame("", last=False), *[frame("", Opcode.CONT, last=False)] * 20_000]
    url = listen(body_bytes=1000)
    assert not reply(url, b"".join(parts))
    assert answers(url)
    assert "large 1" in "".join(log_lines())


@pytest.mark.parametrize("prefix", [b"", STATE], ids=["alone", "behind a whole one"])
def test_an_incomplete_large_message_closes_the_connection(listen, log_lines, prefix):
    reply(listen(body_seconds=0.5), prefix + frame("x" * 100_000)[:-1])
    assert "slow 1" in "".join(log_lines())


def test_frames_split_across_reads_do_not_count_as_slow(listen):
    with upgraded(url := listen(body_seconds=2), run_path(url)) as wire:
        wire.sendall(STATE[:5])
        start_time, num_answers = time.monotonic(), 0
        while time.monotonic() < start_time + 3:
            wire.sendall(STATE[5:] + STATE[:5])
            num_answers += wire.recv(2**16).count(b"step_count")
        wire.sendall(STATE[5:] + GOOD_BYE)
        assert until(wire, CLOSE_ANSWER).count(b"step_count") == 1
    assert num_answers > 1


def test_a_client_that_answers_no_ping_is_disconnected(listen):
    assert close_code(reply(listen(ping_seconds=0.2, pong_seconds=0.2))) == 1011


def test_many_frames_are_answered_in_order_without_blocking_other_clients(listen):
    url = listen()
    frames = [frame(json.dumps({"type": f"number {number}"})) for number in range(2000)]
    with upgraded(url, run_path(url)) as wire, connected(url) as other:
        wire.sendall(b"".join(frames) + GOOD_BYE)
        other.sendall(request())
        assert other.recv(2**16).startswith(b"HTTP/1.1 200 ")
        response = until(wire, CLOSE_ANSWER)
    positions = [response.index(b"'number %d'" % number) for number in range(2000)]
    assert positions == sorted(positions)


def test_a_flood_of_pings_closes_the_connection(listen):
    assert reply(listen(body_bytes=1000), frame("x", Opcode.PING) * 50_000).startswith(b"\x8a\x01x")


def test_unread_answers_close_the_connection(listen, log_lines):
    url = listen(unread_seconds=0.5)
    with upgraded(url, run_path(url), reads=False) as wire:
        wire.sendall(STATE * 2000)
        wait_for(lambda: "unread 1" in "".join(log_lines()))
        assert len(until_closed(wire)) < 50_000
    assert answers(url)


@pytest.mark.parametrize("field", ["Content-Length: 3", f"A: {'x' * 9000}"], ids=["body", "long"])
def test_an_invalid_handshake_closes_the_connection(listen, log_lines, field):
    url = listen()
    with connected(url) as wire:
        send_all(wire, handshake(run_path(url)).replace(b"Host: a", f"Host: a\r\n{field}".encode()))
        send_all(wire, b"abc")
        assert until_closed(wire) == b""
    assert "broken 1" in "".join(log_lines())
    assert "Traceback" not in "".join(log_lines())


def test_frames_sent_before_the_handshake_response_cause_no_error(listen, log_lines):
    url = listen(ping_seconds=0.2, pong_seconds=0.2)
    for data in (STATE, CLOSE, b"\xff" * 10, frame("x", Opcode.PING)):
        with connected(url) as wire:
            send_all(wire, handshake(run_path(url)))
            send_all(wire, data)
            assert until_closed(wire).startswith(b"HTTP/1.1 101 ")
    assert "Traceback" not in "".join(log_lines())


def test_a_service_stops_cleanly_while_a_closing_client_reads_nothing(tmp_path, log_lines):
    limits = Limits(unread_seconds=0.5)
    service = make.service.listening(make.service.service(tmp_path).app, limits, Server)
    url = service.__enter__()
    with upgraded(url, run_path(url), reads=False) as wire:
        wire.sendall(STATE * 300 + CLOSE)
        assert all(answers(url) for _ in range(50))
        service.__exit__(None, None, None)
    assert "Traceback" not in "".join(log_lines())
