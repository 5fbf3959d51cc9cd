"""An HTTP connection that keeps to limits, whatever its client does.

A request that is here in one piece, as a step's is, starts no timer.
"""

import asyncio
import socket
from asyncio import TimerHandle
from typing import ClassVar, cast

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from agentworld.http.protection import Fault, Guard

# A client may ask for the next thing before it has an answer; so far ahead none has to.
_MOST_AHEAD = 16
# Up to here a body is not counted among what is held: clients that fill the room for bodies do not
# stand in the way of steps.
_SMALL_BYTES = 2**16
# The framing of chunks may be longer than what is in them, but not endless.
_MOST_FRAMING = 2
_REFUSED_AT_ONCE = 64
# Of what a refused client still sends; who floods is not worth the time to read it.
MOST_DROPPED = 2**18


class _Refused(Exception):
    """Ends the parser's work; the connection knows why."""


class GuardedHttp(HttpToolsProtocol):
    """One connection."""

    guard: ClassVar[Guard]
    """Of the service; see `guarded_http`."""

    _deadline: TimerHandle | None = None
    _awaited: object = None
    """The part of a request that the deadline is for: a scope is its head, a cycle its body."""
    _running: RequestResponseCycle | None = None
    """The request that is being answered, where others wait behind it."""
    _fault: Fault = "broken"
    _over = False
    _num_head = _num_body = _num_raw = _num_trailers = _num_dropped = _buffer_bytes = 0
    url = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        crowd = len(self.connections) - self.guard.limits.connections
        if crowd > 0:
            self._turn_away(crowd)
            return
        # The kernel ends a connection whose client reads nothing, also one that is being closed.
        unread = int(1e3 * self.guard.limits.unread_seconds)
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, unread)
        self._awaited = self
        self._set_deadline(self.guard.limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._let_go()
        self._leave()
        if isinstance(exc, TimeoutError):
            self.guard.note("unread")
        super().connection_lost(exc)
        if self.pipeline:  # these were never begun, and hold this one
            self.pipeline.clear()
            del self.cycle

    def shutdown(self) -> None:
        if self._over or (self._awaited is self.cycle and not self.pipeline):
            self._abort()  # a service that ends does not wait for a request that is not here yet
        else:
            super().shutdown()

    def data_received(self, data: bytes) -> None:
        if self._over:
            self._num_dropped += len(data)
            if self._num_dropped > MOST_DROPPED:
                self.transport.pause_reading()
            return
        super().data_received(data)
        if not self._over:
            self._watch(len(data))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Drops what follows a body of chunks: it would be taken for a part of the head."""
        if self.cycle is not None and self.cycle.scope is self.scope:
            self._num_trailers += 1
        else:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        limits, size, body = self.guard.limits, len(self.url), 0
        for name, value in self.headers:
            size += len(name) + len(value)
            if name == b"content-length":
                body = int(value)
        if size > limits.head_bytes or len(self.headers) > limits.headers:
            self._stop("head")
        if body > limits.body_bytes:
            self._stop("large")
        if len(self.pipeline) >= _MOST_AHEAD:
            self._stop("capacity")
        self._num_body = self._num_raw = self._num_trailers = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._num_body += len(body)
        if self._num_body > self.guard.limits.body_bytes:
            self._stop("large")
        if self._num_body > _SMALL_BYTES and not self._hold(self._num_body):
            self._stop("capacity")
        super().on_body(body)

    def on_response_complete(self) -> None:
        if self._buffer_bytes and not self.flow.write_paused:
            self._hold(0)
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        if not self._hold(self.transport.get_write_buffer_size()):
            self.guard.note("capacity")
            self._abort()

    def resume_writing(self) -> None:
        self._hold(0)
        super().resume_writing()

    def handle_websocket_upgrade(self) -> None:
        self._let_go()
        if self.cycle is not None and not self.cycle.response_complete:
            self._refuse("broken")  # its answer would come among the frames
        else:
            super().handle_websocket_upgrade()
            self._over = True  # its bytes are another one's now
            del self.parser  # which holds this one

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - our answer is JSON
        self._refuse(self._fault)

    def _watch(self, num_bytes: int) -> None:
        """Sets the deadline for what is not here in full."""
        cycle = cast(RequestResponseCycle | None, self.cycle)  # none before the first request
        if cycle is None:
            self._count_head(num_bytes)  # of the first request: timed since the beginning
            return
        awaited: object = None
        if cycle.scope is not self.scope:
            awaited = self.scope
        elif cycle.more_body:
            awaited = cycle
        elif cycle.response_complete and self.timeout_keep_alive_task is None:
            awaited = self  # empty lines between requests, which end uvicorn's own timer
        if awaited is not self._awaited:
            self._awaited = awaited
            self._num_head = num_bytes = 0  # some of these are of what was before
            self._forget_deadline()
            if awaited is not None:
                limits = self.guard.limits
                self._set_deadline(limits.body_seconds if awaited is cycle else limits.head_seconds)
        if awaited is cycle:
            self._count_body(num_bytes)
        elif awaited is not None:
            self._count_head(num_bytes)

    def _count_head(self, num_bytes: int) -> None:
        self._num_head += num_bytes
        limits = self.guard.limits
        if self._num_head > limits.head_bytes or len(self.headers or ()) > limits.headers:
            self._refuse("head")

    def _count_body(self, num_bytes: int) -> None:
        """Counts chunks with their framing, and what follows them."""
        self._num_raw += num_bytes
        limits = self.guard.limits
        if self._num_raw > _SMALL_BYTES + _MOST_FRAMING * limits.body_bytes:
            self._refuse("large")
        elif self._num_trailers > limits.headers:
            self._refuse("head")

    def _set_deadline(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self._expire, seconds)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self, seconds: float) -> None:
        cycle = self.cycle
        if self._awaited is cycle and not self.flow.read_paused:
            self._refuse("slow")
        elif cycle is not None and not cycle.response_complete:  # an earlier request comes first
            self._set_deadline(seconds)
        else:
            self.guard.note("slow")
            self.transport.close()

    def _hold(self, num_bytes: int) -> bool:
        """Whether there is room for this in place of what was held before."""
        more, self._buffer_bytes = num_bytes - self._buffer_bytes, num_bytes
        return self.guard.hold(more)

    def _let_go(self) -> None:
        self._forget_deadline()
        self._awaited = None  # may be this one: objects that hold each other stay for long
        if self._buffer_bytes:
            self._hold(0)

    def _stop(self, fault: Fault) -> None:
        """Out of the parser, which then asks for a refusal."""
        self._fault = fault
        raise _Refused(fault)

    def _refuse(self, fault: Fault) -> None:
        """Ends the connection, with an answer where it cannot be taken for another request's."""
        self._over = True
        self.guard.note(fault)
        self._let_go()
        self._leave()
        cycle = self.cycle
        if cycle is not None:
            is_refused = cycle.scope is self.scope
            if is_refused and cycle.response_complete:  # answered before it was here
                self.transport.close()
                return
            if not cycle.response_complete and (
                not is_refused or self.pipeline or cycle.response_started
            ):
                self._abort()
                return
        self.flow.resume_reading()
        path = self.url.partition(b"?")[0].decode("latin-1")
        self.transport.write(self.guard.refusal(fault, path))
        self.transport.write_eof()
        self._deadline = self.loop.call_later(
            self.guard.limits.linger_seconds, self.transport.abort
        )

    def _abort(self) -> None:
        self._leave()
        self.transport.abort()

    def _leave(self) -> None:
        """Lets nobody write to a connection that is over."""
        if self._running is not None:
            self._running.disconnected = True
            self._running.message_event.set()

    def _turn_away(self, crowd: int) -> None:
        self._over = True
        self.guard.note("capacity")
        if crowd > _REFUSED_AT_ONCE:  # a refusal takes a file until it is sent
            self.transport.abort()
        else:
            self.transport.write(self.guard.refusal("capacity"))
            self.transport.close()


def guarded_http(guard: Guard) -> type[GuardedHttp]:
    """The class that uvicorn makes its connections by, and knows no more of them."""
    return type("ServiceHttp", (GuardedHttp,), {"guard": guard})
