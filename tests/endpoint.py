"""Somebody's OpenAI-compatible endpoint, in a thread of this process."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

Fields = dict[str, object]


class Asked(NamedTuple):
    """One request."""

    headers: dict[str, str]
    body: Fields


class Endpoint(NamedTuple):
    url: str
    asked: list[Asked]


@contextmanager
def running(say: Callable[[Asked], str | int]) -> Iterator[Endpoint]:
    """Answers each request with a text, or refuses it with a status."""
    asked: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            request = Asked({name.lower(): text for name, text in self.headers.items()}, body)
            asked.append(request)
            said = say(request)
            self.send_response(said if isinstance(said, int) else 200)
            self.end_headers()
            self.wfile.write(json.dumps(_answer(str(said), request)).encode())

        def log_message(self, *_arguments: object) -> None:
            """Says nothing of its requests."""

    server = _Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Endpoint(f"http://127.0.0.1:{server.server_port}", asked)
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128


def _answer(text: str, asked: Asked) -> Fields:
    return {
        "id": asked.headers["x-request-id"],
        "model": asked.body["model"],
        "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }
