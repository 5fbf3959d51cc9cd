"""Responses of a chat API, valid and spoiled."""

import copy
import json
from collections.abc import Callable
from typing import Any

Answer = dict[str, Any]


def response(answer: Answer, *, length: bool = True) -> bytes:
    """A complete response; without its length, it ends with the connection."""
    return _http(200, json.dumps(answer).encode(), length=length)


def _http(status: int, body: bytes, *headers: str, length: bool = True) -> bytes:
    size = f"content-length: {len(body)}" if length else "connection: close"
    head = [f"HTTP/1.1 {status} X", "content-type: application/json", size, *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def _changed(change: Callable[[Answer], object]) -> Callable[[Answer], bytes]:
    """The response with something invalid in it."""

    def spoil(answer: Answer) -> bytes:
        spoiled = copy.deepcopy(answer)
        change(spoiled)
        return response(spoiled)

    return spoil


def _content(make: Callable[[str], object]) -> Callable[[Answer], bytes]:
    """The response with other content, derived from the observation."""

    def change(answer: Answer) -> None:
        message = answer["choices"][0]["message"]
        message["content"] = make(message["content"].rpartition("</think>")[2])

    return _changed(change)


SPOILED: dict[str, Callable[[Answer], bytes]] = {
    "500": lambda answer: _http(500, b"Internal Server Error"),
    "503": lambda answer: _http(503, b"{}", "retry-after: 1"),
    "429": lambda answer: _http(429, b"{}", "retry-after: 1"),
    "504": lambda answer: _http(504, b""),
    "400": lambda answer: _http(400, b'{"error": "bad request"}'),
    "page of a proxy": lambda answer: _http(200, b"<html><body>Welcome</body></html>"),
    "no json": lambda answer: _http(200, json.dumps(answer).encode()[:-2]),
    "no body": lambda answer: _http(200, b""),
    "no choices": _changed(lambda answer: answer.update(choices=[])),
    "two choices": _changed(lambda answer: answer.update(choices=2 * answer["choices"])),
    "no usage": _changed(lambda answer: answer.pop("usage")),
    "no room": _changed(lambda answer: answer["usage"].update(prompt_tokens=2**30)),
    "wrong model": _changed(lambda answer: answer.update(model="another")),
    "length": _changed(lambda answer: answer["choices"][0].update(finish_reason="length")),
    "abort": _changed(lambda answer: answer["choices"][0].update(finish_reason="abort")),
    "no end": _changed(lambda answer: answer["choices"][0].update(finish_reason=None)),
    "empty": _content(lambda text: ""),
    "null": _content(lambda text: None),
    "a list": _content(lambda text: [{"type": "text", "text": text}]),
    "a number": _content(lambda text: 0),
    "newlines": _content(lambda text: "\n\n"),
    "only a thought": _content(lambda text: f"<think>{text}</think>"),
    "half a thought": _content(lambda text: f"<think>{text}"),
}
"""By name, converts a response to spoiled bytes."""
