"""A connection that enforces limits on its client.

It sits between the event loop and uvicorn's protocol, and uses only asyncio's interfaces of
protocol and transport: it passes bytes on, stops reading, and closes. limited_app.py reports the
requests.
"""

import asyncio
import socket
from collections.abc import Callable
from contextvars import ContextVar
from typing import cast

from agentworld.http.protection import Fault, Guard

CURRENT: ContextVar["Connection"] = ContextVar("connection")
"""The connection whose bytes are parsed; a request's task inherits it."""

# The bytes of a WebSocket that are passed on at once: about a hundred of the shortest frames, a
# millisecond of work, before other connections have their turn.
_SLICE_BYTES = 1_024
# Unfinished bodies up to this size do not count towards the shared limit, so that clients with
# large bodies do not block steps.
SMALL_BYTES = 2**16
# Framing may be as long as the content, but not endless.
_MOST_FRAMING = 2
# The most bytes that are read from a refused client.
_MOST_DROPPED = 2**18
# A refusal uses a file descriptor until it is sent.
_REFUSED_AT_ONCE = 64


class Connection(asyncio.Protocol):
    """One connection of a service."""

    def __init__(self, guard: Guard, make_protocol: Callable[[], asyncio.Protocol]) -> None:
        self.guard = guard
        self.is_extra = False
        """Whether it is over the limit of connections: it gets a refusal and is closed."""
        self.is_over = False
        """Whether nothing is read or written any more."""
        self.is_handshaking = False
        """Whether a WebSocket waits for the response to its handshake."""
        self._make_protocol = make_protocol
        self._protocol = asyncio.Protocol()
        self._is_socket = False
        self._request: object = None
        self._deadline: float | None = None
        self._rest = bytearray()  # received and not parsed yet
        self._next_slice: asyncio.Handle | None = None
        self._is_paused = self._is_unread = self._is_stopped = False
        self._num_open = 0  # bytes of incomplete or unread messages
        self._num_dropped = self._num_held = 0

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Starts to wait for a request."""
        self._loop = asyncio.get_running_loop()
        self._transport = cast(asyncio.Transport, transport)
        num_extra = self.guard.add(self)
        self.is_extra = num_extra > 0
        if num_extra > _REFUSED_AT_ONCE:
            self._abort("capacity")
            return
        # The kernel closes a connection whose client reads nothing, even while it is being closed.
        unread = int(1e3 * self.guard.limits.unread_seconds)
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, unread)
        self._set_deadline(self.guard.limits.head_seconds)
        self._protocol = self._make_protocol()
        self._protocol.connection_made(
            cast(asyncio.Transport, _TransportView(self, self._transport))
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """Breaks reference cycles, which would keep the objects in memory for long."""
        self.is_over = True
        self.guard.discard(self)
        self.hold(0)
        self._rest.clear()
        if isinstance(exc, TimeoutError):
            self.guard.note("unread")
        self._detach(exc)

    def data_received(self, data: bytes) -> None:
        """Passes on the bytes that the limits allow."""
        if self.is_over:
            self._num_dropped += len(data)
            if self._num_dropped > _MOST_DROPPED:
                self._transport.pause_reading()
        elif self._rest or self._is_blocked or (self._is_socket and len(data) > _SLICE_BYTES):
            self._rest += data
            self._is_stopped = True
            self._transport.pause_reading()
            self._schedule_slice()
        else:
            self._parse(data)

    def eof_received(self) -> bool | None:
        """Ends the connection, as uvicorn does."""
        return self._protocol.eof_received()

    def pause_writing(self) -> None:
        """Handles no further requests of a client that does not read its responses."""
        self._is_unread = True
        self._protocol.pause_writing()
        if not self.hold(self._transport.get_write_buffer_size()):
            self._abort("capacity")

    def resume_writing(self) -> None:
        """Resumes reading."""
        self._is_unread = False
        self.hold(0)
        self._protocol.resume_writing()
        self._schedule_slice()

    # Called by limited_app.py

    def begin(self, request: object) -> None:
        """The head of a request has been received."""
        self._request, self._deadline = request, None

    def consume(self) -> None:
        """Everything that was received is complete and has been read."""
        if not self.is_over:
            self._num_open, self._deadline = 0, None

    def leave_if_closing(self) -> None:
        """Tells uvicorn of a closed connection before it answers: it closes one on invalid HTTP."""
        if self._is_closing:
            self._detach(None)

    def finish(self, request: object) -> None:
        """The request was answered; if the next one has begun, that one stays current."""
        if self._request is request and not self.is_over:
            self._request = self._deadline = None
            if not self._is_unread:
                self.hold(0)

    def hold(self, num_bytes: int) -> bool:
        """Reserves memory in place of the earlier reservation; false if there is no room."""
        growth, self._num_held = num_bytes - self._num_held, num_bytes
        return self.guard.hold(growth)

    def end(self) -> None:
        """Closes for writing, and discards for a while what still arrives.

        If a server closes while its client sends, the client gets a reset instead of the response.
        """
        if self._is_closing:
            return
        self.is_over = True
        self._rest.clear()
        self.hold(0)
        if self._is_stopped:
            self._transport.resume_reading()
        self._transport.write_eof()
        self._set_deadline(self.guard.limits.linger_seconds)
        # uvicorn does not wait for it, and must not write to it any more.
        self._loop.call_soon(self._detach, None)

    # Called by the guard

    def check(self, now: float) -> None:
        """Closes the connection if it is late."""
        if self._deadline is None or now < self._deadline:
            return
        if self.is_over:
            self._transport.abort()
        elif self._is_blocked:  # the client is not late, because the service does not read
            self._set_deadline(self.guard.limits.body_seconds)
        elif self._is_socket:
            self._abort("slow")
        else:
            self.guard.note("slow")
            self._transport.close()

    # Called by uvicorn

    def upgrade(self, protocol: asyncio.Protocol) -> None:
        """Makes the connection a WebSocket."""
        self._protocol, self._is_socket = protocol, True
        self._is_paused = self.is_handshaking = True
        # The task of its request is in the event loop's queue by now, or will never be.
        self._loop.call_soon(self._end_without_request)

    def close(self) -> None:
        """Closes at once if the client has completed what it began to send."""
        if self._is_socket or self._num_open:
            self.end()
        else:
            self._transport.close()

    def pause_reading(self) -> None:
        """Takes effect with the next bytes; rarely more arrive before that."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Takes effect in the loop's next iteration; all messages of a WebSocket were read."""
        self._is_paused = False
        if self._is_socket:
            self.consume()
            if self._num_held and not self._is_unread:
                self.hold(0)
        self._schedule_slice()

    @property
    def _is_closing(self) -> bool:
        return self.is_over or self._transport.is_closing()

    @property
    def _is_blocked(self) -> bool:
        return self._is_paused or self._is_unread

    def _schedule_slice(self) -> None:
        if self._is_stopped and self._next_slice is None and not self.is_over:
            self._next_slice = self._loop.call_soon(self._take_slice)

    def _take_slice(self) -> None:
        self._next_slice = None
        if self.is_over or self._is_blocked:
            return
        if self._rest:
            size = _SLICE_BYTES if self._is_socket else len(self._rest)
            data = bytes(self._rest[:size])
            del self._rest[:size]
            self._parse(data)
            self._schedule_slice()
        else:
            self._is_stopped = False
            self._transport.resume_reading()

    def _parse(self, data: bytes) -> None:
        self._num_open += len(data)
        if self._request is None and self._deadline is None:
            self._set_deadline(self.guard.limits.head_seconds)
        outer = CURRENT.set(self)
        try:
            self._protocol.data_received(data)
        except Exception:  # noqa: BLE001 - what a client sends can make uvicorn fail in many ways
            self._abort("broken")
            return
        finally:
            CURRENT.reset(outer)
        if self._is_socket and self._num_open > SMALL_BYTES:
            self._bound_message()

    def _bound_message(self) -> None:
        """Counts and times bytes that the endpoint did not get: a partial message, or none."""
        limits = self.guard.limits
        if self._num_open > SMALL_BYTES + _MOST_FRAMING * limits.body_bytes:
            self._abort("large")
        elif not self.hold(self._num_open):
            self._abort("capacity")
        elif self._deadline is None:
            self._set_deadline(limits.body_seconds)

    def _end_without_request(self) -> None:
        if self._request is None:
            self._abort("broken")

    def _set_deadline(self, seconds: float) -> None:
        self._deadline = self._loop.time() + seconds

    def _abort(self, fault: Fault) -> None:
        if not self.is_over:
            self.is_over = True
            self.guard.note(fault)
            self._transport.abort()

    def _detach(self, exc: Exception | None) -> None:
        protocol, self._protocol = self._protocol, asyncio.Protocol()
        protocol.connection_lost(exc)


class _TransportView:
    """The transport that uvicorn sees; the connection decides about reading and closing."""

    def __init__(self, connection: Connection, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._connection = connection
        self.close = connection.close
        self.set_protocol = connection.upgrade
        self.pause_reading = connection.pause_reading
        self.resume_reading = connection.resume_reading

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._connection.is_over or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        connection = self._connection
        if not connection.is_over:
            self._transport.write(data)
            if connection.is_handshaking:
                connection.is_handshaking = False
                connection.resume_reading()
