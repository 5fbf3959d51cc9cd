"""ASGI middleware that enforces limits on requests."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentworld.http.connection import CURRENT, SMALL_BYTES, Connection
from agentworld.http.protection import Fault, Guard


class LimitedApp:
    """The outermost middleware of every protocol."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, or one WebSocket."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        connection = CURRENT.get()
        connection.begin(scope)
        try:
            if connection.is_extra:
                await _refuse(self._guard, "capacity", scope, send)
            elif scope["type"] == "websocket":
                await self._converse(connection, scope, receive, send)
            else:
                request = _Request(self._guard, connection, scope, receive, send)
                await request.serve(self._app)
        finally:
            connection.finish(scope)

    async def _converse(
        self, connection: Connection, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serves a WebSocket, whose messages uvicorn and the connection limit."""
        try:
            await self._app(scope, receive, send)
        except RuntimeError:  # uvicorn ended the connection meanwhile
            if not connection.is_over:
                raise


class _Request:
    """One request and its response."""

    def __init__(
        self, guard: Guard, connection: Connection, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._guard = guard
        self._connection = connection
        self._scope = scope
        self._receive = receive
        self._send = send
        self._due = asyncio.get_running_loop().time() + guard.limits.body_seconds
        self._num_bytes = 0
        self._is_whole = self._is_answered = self._is_refused = False

    async def serve(self, app: ASGIApp) -> None:
        for name, value in self._scope["headers"]:
            if name == b"content-length" and int(value) > self._guard.limits.body_bytes:
                await self._refuse("large")
                return
        await app(self._scope, self.receive, self.send)

    async def receive(self) -> Message:
        """The next part of the body, which is counted and timed."""
        if self._is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._due):
                message = await self._receive()
        except TimeoutError:
            return await self._refuse("slow")
        if message["type"] == "http.request":
            self._num_bytes += len(message["body"])
            if self._num_bytes > self._guard.limits.body_bytes:
                return await self._refuse("large")
            if self._num_bytes > SMALL_BYTES and not self._connection.hold(self._num_bytes):
                return await self._refuse("capacity")
            if not message["more_body"]:
                self._is_whole = True
                self._connection.consume()
        return message

    async def send(self, message: Message) -> None:
        """Sends the response, unless another one was sent."""
        if self._is_refused:
            return
        self._connection.leave_if_closing()
        self._is_answered = True
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self._connection.finish(self._scope)  # before uvicorn begins the next one
        await self._send(message)

    async def _refuse(self, fault: Fault) -> Message:
        """Refuses the request; returns the message by which the endpoint sees a gone client."""
        self._is_refused = True
        if self._is_answered:
            self._connection.end()
        else:
            await _refuse(self._guard, fault, self._scope, self._send)
        return {"type": "http.disconnect"}


async def _refuse(guard: Guard, fault: Fault, scope: Scope, send: Send) -> None:
    status, headers, body = guard.refusal(fault, scope["path"])
    kind = "http" if scope["type"] == "http" else "websocket.http"
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": f"{kind}.response.start", "status": status, "headers": pairs})
    await send({"type": f"{kind}.response.body", "body": body})
