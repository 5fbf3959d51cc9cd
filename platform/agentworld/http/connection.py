"""A connection that keeps to limits, whatever its client does.

It stands between the event loop and uvicorn's protocol, and knows of both only what asyncio says of
any protocol and any transport: it passes bytes on, stops reading, and closes. What a request is,
limited_app.py tells it.
"""

import asyncio
import socket
from collections.abc import Callable
from contextvars import ContextVar
from typing import cast

from agentworld.http.protection import Fault, Guard

CURRENT: ContextVar["Connection"] = ContextVar("connection")
"""The one whose bytes are parsed; a request's task inherits it."""

# Of a WebSocket's bytes that came at once: a hundred and some of the shortest frames, a
# millisecond of work, before others have their turn.
_SLICE_BYTES = 1_024
# Up to here what is unfinished is not counted among what is held: clients that fill the room for
# bodies do not stand in the way of steps.
SMALL_BYTES = 2**16
# The framing of a message may be as long as what is in it, but not endless.
_MOST_FRAMING = 2
# Of what a refused client still sends; who floods is not worth the time to read it.
_MOST_DROPPED = 2**18
# A refusal takes a file until it is sent.
_REFUSED_AT_ONCE = 64


class Connection(asyncio.Protocol):
    """One connection of a service."""

    def __init__(self, guard: Guard, make_protocol: Callable[[], asyncio.Protocol]) -> None:
        self.guard = guard
        self.is_extra = False
        """Whether it is one too many: it is told so, and no more."""
        self.is_over = False
        """Whether nothing is read or written any more."""
        self.is_handshaking = False
        """Whether a WebSocket waits for an answer to its handshake."""
        self._make_protocol = make_protocol
        self._protocol = asyncio.Protocol()
        self._is_socket = False
        self._request: object = None
        self._deadline: float | None = None
        self._rest = bytearray()  # came, and was not parsed yet
        self._next_slice: asyncio.Handle | None = None
        self._is_paused = self._is_unread = self._is_stopped = False
        self._num_open = 0  # bytes of what is not whole, or not taken
        self._num_dropped = self._num_held = 0

    # What the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins to wait for a request."""
        self._loop = asyncio.get_running_loop()
        self._transport = cast(asyncio.Transport, transport)
        num_extra = self.guard.add(self)
        self.is_extra = num_extra > 0
        if num_extra > _REFUSED_AT_ONCE:
            self._abort("capacity")
            return
        # The kernel ends a connection whose client reads nothing, also one that is being closed.
        unread = int(1e3 * self.guard.limits.unread_seconds)
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, unread)
        self._set_deadline(self.guard.limits.head_seconds)
        self._protocol = self._make_protocol()
        self._protocol.connection_made(
            cast(asyncio.Transport, _TransportView(self, self._transport))
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """Lets go of everything: what holds each other stays for long."""
        self.is_over = True
        self.guard.discard(self)
        self.hold(0)
        self._rest.clear()
        if isinstance(exc, TimeoutError):
            self.guard.note("unread")
        self._detach(exc)

    def data_received(self, data: bytes) -> None:
        """Passes on what may be passed on now."""
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
        """Who does not read is not read."""
        self._is_unread = True
        self._protocol.pause_writing()
        if not self.hold(self._transport.get_write_buffer_size()):
            self._abort("capacity")

    def resume_writing(self) -> None:
        """Reads on."""
        self._is_unread = False
        self.hold(0)
        self._protocol.resume_writing()
        self._schedule_slice()

    # What limited_app.py tells

    def begin(self, request: object) -> None:
        """A request's head is here."""
        self._request, self._deadline = request, None

    def consume(self) -> None:
        """Whatever came is whole, and taken."""
        if not self.is_over:
            self._num_open, self._deadline = 0, None

    def leave_if_closing(self) -> None:
        """Tells uvicorn, which closes on what is no HTTP and would answer before it hears."""
        if self._is_closing:
            self._detach(None)

    def finish(self, request: object) -> None:
        """It was answered; where the next one has begun, that one stays."""
        if self._request is request and not self.is_over:
            self._request = self._deadline = None
            if not self._is_unread:
                self.hold(0)

    def hold(self, num_bytes: int) -> bool:
        """Whether there is room for this in place of what was held before."""
        growth, self._num_held = num_bytes - self._num_held, num_bytes
        return self.guard.hold(growth)

    def end(self) -> None:
        """Says good-bye, and drops for a while what still comes.

        Who closes while a client sends has it told of a reset in place of what it was answered.
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
        # uvicorn does not wait for it, and cannot take it for one that it may still write to.
        self._loop.call_soon(self._detach, None)

    # What the guard tells

    def check(self, now: float) -> None:
        """Ends what is late."""
        if self._deadline is None or now < self._deadline:
            return
        if self.is_over:
            self._transport.abort()
        elif self._is_blocked:  # it is we who do not read
            self._set_deadline(self.guard.limits.body_seconds)
        elif self._is_socket:
            self._abort("slow")
        else:
            self.guard.note("slow")
            self._transport.close()

    # What uvicorn tells

    def upgrade(self, protocol: asyncio.Protocol) -> None:
        """It is a WebSocket from now on."""
        self._protocol, self._is_socket = protocol, True
        self._is_paused = self.is_handshaking = True
        # Its request's task is in the event loop's queue by now, or never will be.
        self._loop.call_soon(self._end_unless_begun)

    def close(self) -> None:
        """At once where the client has sent all that it began to."""
        if self._is_socket or self._num_open:
            self.end()
        else:
            self._transport.close()

    def pause_reading(self) -> None:
        """From the next bytes on: seldom more come before the last ones were taken."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """In the next turn of the event loop; of a WebSocket every message was taken."""
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
        """Counts and times what the endpoint was not given: a part of a message, or no message."""
        limits = self.guard.limits
        if self._num_open > SMALL_BYTES + _MOST_FRAMING * limits.body_bytes:
            self._abort("large")
        elif not self.hold(self._num_open):
            self._abort("capacity")
        elif self._deadline is None:
            self._set_deadline(limits.body_seconds)

    def _end_unless_begun(self) -> None:
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
    """A transport as uvicorn sees it: the connection decides what it reads and how it closes."""

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
