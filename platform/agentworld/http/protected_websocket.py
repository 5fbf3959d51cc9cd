"""A WebSocket that keeps to limits, whatever its client does.

A frame that is here in one piece starts no timer. A client may send many frames before it reads an
answer; they are taken a little at a time, so that others get their turn.
"""

import asyncio
from asyncio import Handle, TimerHandle
from typing import ClassVar

from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.frames import CloseCode, Frame

from agentworld.http.protected_http import MOST_DROPPED
from agentworld.http.protection import Fault, Guard

# A hundred and some of the shortest frames: a millisecond of work.
_SLICE_BYTES = 1_024
# Up to here what is unfinished is not counted among what is held, as in protected_http.py.
_SMALL_BYTES = 2**16
# A message may come in parts, and an empty part is one too; some clients cut it after every 4 KiB.
# So many parts have to hold so many bytes each on average.
_MANY_PARTS, _PART_BYTES = 100, 256
# Of a client's pings and pongs between two of our pings.
_MOST_CONTROLS = 100


class GuardedSocket(WebSocketsSansIOProtocol):
    """One connection, from its handshake on."""

    guard: ClassVar[Guard]
    """Of the service; see `guarded_socket`."""

    _deadline: TimerHandle | None = None
    """Of a message that is not here in full."""
    _slice: Handle | None = None
    _fault: Fault = "broken"
    _over = False
    _num_controls = _num_dropped = _buffer_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._rest = bytearray()  # came, and was not looked at yet

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        if isinstance(exc, TimeoutError):
            self.guard.note("unread")
        super().connection_lost(exc)
        # Objects that hold each other stay for long: server.py lets the collector seldom run.
        self.conn.parser.close()
        _let_frames_go(self.conn.parser_exc)
        _let_frames_go(self.conn.handshake_exc)

    def shutdown(self) -> None:
        try:
            super().shutdown()
        except InvalidState:  # the client is closing it already
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self._over:
            self._num_dropped += len(data)
            if self._num_dropped > MOST_DROPPED:
                self.transport.pause_reading()
        elif not self.handshake_initiated:
            self._shake_hands(data)
        elif self._rest or len(data) > _SLICE_BYTES or not self.handshake_complete:
            self._rest += data
            self._take_rest()
        else:
            self._take(data)

    async def receive(self) -> ASGIReceiveEvent:
        message = await self.queue.get()
        if self.read_paused and self.queue.empty():
            self.read_paused = False
            self.transport.resume_reading()
        if self._rest:
            self._take_rest()
        return message

    async def send(self, message: ASGISendEvent) -> None:
        if self._over:
            raise ClientDisconnected
        await super().send(message)
        if self._rest:
            self._take_rest()

    def handle_cont(self, event: Frame) -> None:
        num_parts = len(self.frames)
        is_many = num_parts > 0 and num_parts % _MANY_PARTS == 0
        if is_many and sum(map(len, self.frames)) < num_parts * _PART_BYTES:
            self._fail("large", CloseCode.MESSAGE_TOO_BIG)
        else:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        data, self.frames = b"".join(self.frames), []
        if self.close_sent:
            return
        try:
            self.queue.put_nowait(self._event(data))
        except UnicodeDecodeError:
            self._fail("broken", CloseCode.INVALID_DATA)
            return
        # To stop reading after every message, and begin again, costs as much as to read it.
        may_wait = self.queue.qsize() == 1 and len(data) <= _SMALL_BYTES
        if not may_wait and not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def _event(self, data: bytes) -> ASGIReceiveEvent:
        if self.curr_msg_data_type == "text":
            return {"type": "websocket.receive", "text": data.decode()}
        return {"type": "websocket.receive", "bytes": data}

    def handle_ping(self) -> None:
        self._count_control()
        if self.writable.is_set() and not self._over:
            super().handle_ping()
        else:
            self.conn.data_to_send()  # who reads nothing gets no pong

    def handle_pong(self, event: Frame) -> None:
        self._count_control()
        super().handle_pong(event)

    def send_keepalive_ping(self) -> None:
        self._num_controls = 0
        super().send_keepalive_ping()

    def keepalive_timeout(self) -> None:
        if self.read_paused or self._rest:  # it is we who do not read
            self.pong_timer = self.pending_ping_payload = None
            self.schedule_ping()
        else:
            self.guard.note("silent")
            super().keepalive_timeout()

    def pause_writing(self) -> None:
        super().pause_writing()
        if not self._hold(self.transport.get_write_buffer_size()):
            self.guard.note("capacity")
            self.transport.abort()

    def resume_writing(self) -> None:
        self._hold(0)
        super().resume_writing()

    def handle_parser_exception(self) -> None:
        """Ends the connection; what its client still sends is dropped for a while."""
        if self._over:
            return
        self._end()
        close_frame = self.conn.close_sent
        code = close_frame.code if close_frame else CloseCode.ABNORMAL_CLOSURE
        self.guard.note("large" if code == CloseCode.MESSAGE_TOO_BIG else self._fault)
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": ""})
        self.close_sent = True
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.write_eof()
        # Its own timer: without one it closes as soon as the endpoint returns.
        self.close_timer = self.loop.call_later(
            self.guard.limits.linger_seconds, self.transport.abort
        )

    def _shake_hands(self, data: bytes) -> None:
        super().data_received(data)
        if not self.handshake_initiated:  # it was not understood, and nothing would follow
            self._end()
            self.guard.note("broken")
            self.transport.write(self.guard.refusal("broken"))
            self.transport.close()

    def _take_rest(self) -> None:
        """A little of it, as soon as the endpoint wants more and others had their turn."""
        self.transport.pause_reading()
        if self._slice is None and self.handshake_complete and not self.read_paused:
            self._slice = self.loop.call_soon(self._take_slice)

    def _take_slice(self) -> None:
        self._slice = None
        data = bytes(self._rest[:_SLICE_BYTES])
        del self._rest[:_SLICE_BYTES]
        self._take(data)
        if self._rest:
            self._take_rest()
        elif not self.read_paused:
            self.transport.resume_reading()

    def _take(self, data: bytes) -> None:
        super().data_received(data)
        if not self._over:
            if self.conn.reader.buffer or self.conn.current_size is not None:
                self._await_end(len(data))
            elif self._deadline is not None:
                self._forget_deadline()

    def _await_end(self, num_bytes: int) -> None:
        """Times and counts a message that is not here in full."""
        whole, last = self.conn.current_size, len(self.conn.reader.buffer)
        if self._deadline is None or (whole is None and last < num_bytes):  # it begins in these
            self._forget_deadline()
            self._set_deadline()
        buffer_bytes = last + (whole or 0)
        if buffer_bytes > _SMALL_BYTES and not self._hold(buffer_bytes):
            self._fail("capacity", CloseCode.TRY_AGAIN_LATER)

    def _set_deadline(self) -> None:
        seconds = self.guard.limits.body_seconds
        self._deadline = self.loop.call_later(seconds, self._expire)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
            self._hold(0)

    def _expire(self) -> None:
        if self.read_paused or self._rest:  # it is we who do not read
            self._set_deadline()
        else:
            self._fail("slow", CloseCode.POLICY_VIOLATION)

    def _count_control(self) -> None:
        self._num_controls += 1
        if self._num_controls > _MOST_CONTROLS:
            self._fail("large", CloseCode.POLICY_VIOLATION)

    def _fail(self, fault: Fault, code: CloseCode) -> None:
        if not self._over:
            self._fault = fault
            self.conn.fail(code)
            self.handle_parser_exception()

    def _hold(self, num_bytes: int) -> bool:
        """Whether there is room for this in place of what was held before."""
        more, self._buffer_bytes = num_bytes - self._buffer_bytes, num_bytes
        return self.guard.hold(more)

    def _end(self) -> None:
        self._over = True
        self._forget_deadline()
        self._hold(0)
        self._rest.clear()
        if self._slice is not None:
            self._slice.cancel()
            self._slice = None


def guarded_socket(guard: Guard) -> type[GuardedSocket]:
    """The class that uvicorn makes its connections by, and knows no more of them."""
    return type("ServiceSocket", (GuardedSocket,), {"guard": guard})


def _let_frames_go(error: BaseException | None) -> None:
    while error is not None:
        error.__traceback__ = None
        error = error.__context__
