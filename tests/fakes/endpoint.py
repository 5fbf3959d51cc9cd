"""An external OpenAI-compatible endpoint, in a thread of this process."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

Fields = dict[str, object]
Metadata = dict[str, Fields | int]
"""JSON responses by path; or a status instead."""


class Request(NamedTuple):
    """One request."""

    headers: dict[str, str]
    body: Fields


class Reply(NamedTuple):
    """A whole response."""

    status: int
    body: object = ""
    headers: tuple[tuple[str, str], ...] = ()


class Endpoint(NamedTuple):
    url: str
    requests: list[Request]
    read: list[str]
    """Paths that were requested."""


def vllm(version: str = "0", model: str = "m", context_tokens: int = 1024) -> Metadata:
    """The metadata of a vLLM server."""
    models = [{"id": model, "max_model_len": context_tokens}]
    return {"/version": {"version": version}, "/v1/models": {"data": models}}


@contextmanager
def running(
    respond: Callable[[Request], str | int | Reply], metadata: Metadata | None = None
) -> Iterator[Endpoint]:
    """Responds to each request with a text or a whole reply, or refuses it with a status; with
    vLLM's metadata in `metadata`, it names its responses as vLLM does.
    """
    requests: list[Request] = []
    paths: list[str] = []
    name_format = "chatcmpl-{}" if metadata else "{}"

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            request = Request({name.lower(): text for name, text in self.headers.items()}, body)
            requests.append(request)
            reply = respond(request)
            name = name_format.format(request.headers.get("x-request-id", ""))
            if not isinstance(reply, Reply):
                status = reply if isinstance(reply, int) else 200
                reply = Reply(status, _answer(name, str(reply), request))
            self.send_response(reply.status)
            for header in reply.headers:
                self.send_header(*header)
            self.end_headers()
            self.wfile.write(json.dumps(reply.body).encode())

        def do_GET(self) -> None:
            paths.append(self.path)
            response = (metadata or {}).get(self.path, 404)
            self.send_response(response if isinstance(response, int) else 200)
            self.end_headers()
            self.wfile.write(json.dumps(response).encode())

        def log_message(self, *_arguments: object) -> None:
            """Logs nothing."""

    server = _Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield Endpoint(f"http://127.0.0.1:{server.server_port}", requests, paths)
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128


def _answer(name: str, text: str, request: Request) -> Fields:
    return {
        "id": name,
        "model": request.body["model"],
        "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }
