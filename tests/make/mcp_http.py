"""An MCP server of the official package over HTTP, behind a proxy that fails on demand."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer

from agentworld.engine.process import free_port
from make.service import PromptServer, running

TOKEN = "Bearer letmein"


@dataclass
class Notes:
    """The server's notes, and the failure of its HTTP."""

    url: str = ""
    texts: list[str] = field(default_factory=list)
    num_clears: int = 0
    most_clears: int = 1000
    failure: str = ""
    """`status`, `flood`, `break` or `silence`."""


@contextmanager
def notes() -> Iterator[Notes]:
    """A server that lists notes; only requests with the token reach it."""
    state = Notes()
    server = MCPServer("notes")

    @server.tool()
    def add_note(text: str) -> str:
        state.texts.append(text)
        return "added"

    @server.tool()
    def list_notes() -> list[str]:
        return state.texts

    @server.tool()
    def clear_notes() -> str:
        state.num_clears += 1
        if state.num_clears <= state.most_clears:
            state.texts.clear()
        return "cleared"

    app = _guarded(server.streamable_http_app(), state)
    port = free_port()
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical")
    with running(PromptServer(config)):
        state.url = f"http://127.0.0.1:{port}/mcp"
        yield state


def _guarded(app: Any, state: Notes) -> Any:
    async def guard(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
        elif dict(scope["headers"]).get(b"authorization") != TOKEN.encode():
            await _answer(send, 401, b"{}")
        elif not state.failure or scope["method"] != "POST":
            await app(scope, receive, send)
        elif state.failure == "status":
            await _answer(send, 503, b"{}")
        elif state.failure == "flood":
            await _answer(send, 200, b" " * (3 << 20))
        elif state.failure == "silence":
            await _answer(send, 200, b"data: \n\n", b"text/event-stream")
        else:
            raise ConnectionAbortedError

    return guard


async def _answer(send: Any, status: int, body: bytes, kind: bytes = b"application/json") -> None:
    await send(
        {"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]}
    )
    await send({"type": "http.response.body", "body": body})
