"""Limits on the clients of a service, and the responses to those that exceed them. uvicorn has
almost no limits: a client may send half a request and stay connected, or never read its response.
The limits are enforced where bytes arrive (connection.py) and around the service as a whole
(limited_app.py); server.py sets uvicorn's own limits.
"""

import asyncio
import logging
import math
import resource
import time
from collections import Counter
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

from agentworld.http.naming import AnsweringSimulator
from agentworld.http.openai_errors import ErrorAnswer, is_openai, to_openai
from agentworld.http.schemas import Failure, Problem
from agentworld.records.base import Digest

_log = logging.getLogger(__name__)

Fault = Literal["broken", "slow", "unread", "large", "capacity"]
"""Why a connection was ended:

    broken    the client sent bytes that made uvicorn fail
    slow      a request, or a large message on a WebSocket, was not complete in time
    unread    the client did not read a response
    large     a body was too large, or an incomplete message on a WebSocket was
    capacity  too many connections, or too many bytes of unfinished bodies and unread responses
"""

_MOST_CONNECTIONS = 20_000
_RESERVED_FILES = 256
_LOG_SECONDS = 60.0
_PAUSE_SECONDS = 1.0


class Limits(NamedTuple):
    """Limits of a client, generous to a well-behaved one."""

    body_bytes: int = 4 * 2**20
    """Bytes of a request's body, and of a message on a WebSocket."""
    body_seconds: float = 30.0
    """Seconds until that is complete."""
    head_bytes: int = 64 * 2**10
    """Bytes of a request's head."""
    head_seconds: float = 10.0
    """Seconds until a request's head is complete; the first one's from the connection's start."""
    unread_seconds: float = 30.0
    """How long a client may read nothing while data waits for it."""
    ping_seconds: float = 20.0
    """Seconds between pings on a WebSocket."""
    pong_seconds: float = 60.0
    """How long a client may take to answer a ping, in seconds.

    While a client waits for a step, which may take 50 s, messages that it sent ahead are not read.
    """
    linger_seconds: float = 2.0
    """How long to keep reading from a refused client, which would otherwise get a reset instead of
    the refusal.
    """
    check_seconds: float = 1.0
    """Seconds between checks for late connections."""
    buffer_bytes: int = 256 * 2**20
    """Bytes of the unfinished bodies and unread responses of all clients together."""
    connections: int = _MOST_CONNECTIONS


class Refusal(NamedTuple):
    """A refusal as an HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes


class GuardedConnection(Protocol):
    """The part of a connection that the guard uses."""

    def check(self, now: float) -> None:
        """Closes the connection if it is late."""


class Guard:
    """The state that all connections of a service share; `count_refusal` is called with the kind of
    each refusal.
    """

    def __init__(
        self, simulator: Digest | None, limits: Limits, count_refusal: Callable[[str], None]
    ) -> None:
        """`simulator` is the service's only one; refusals name it. Null if it has several."""
        self.limits = limits
        self.ended: Counter[Fault] = Counter()
        """The number of connections since the start."""
        self._simulator = simulator
        self._count_refusal = count_refusal
        self._connections: set[GuardedConnection] = set()
        self._next_check: asyncio.TimerHandle | None = None
        self._buffer_bytes = 0
        self._last_log_time = -math.inf

    def add(self, connection: GuardedConnection) -> int:
        """Registers a connection; returns the number of connections over the limit."""
        self._connections.add(connection)
        if self._next_check is None:
            self._check_later()
        return len(self._connections) - self.limits.connections

    def discard(self, connection: GuardedConnection) -> None:
        """Removes a closed connection."""
        self._connections.discard(connection)

    def refusal(self, fault: Fault, path: str) -> Refusal:
        """The response in the protocol of the path."""
        self.note(fault)
        status, problem = _problem(fault, self.limits)
        self._count_refusal(problem.kind)
        answer = ErrorAnswer(status, {}, Failure(error=problem))
        if is_openai(path):
            answer = to_openai(status, problem)
        body = answer.failure.model_dump_json().encode()
        headers = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            "connection": "close",
            **answer.headers,
            **AnsweringSimulator(self._simulator).headers,
        }
        if problem.retry_after_seconds is not None:
            headers["retry-after"] = str(math.ceil(problem.retry_after_seconds))
        return Refusal(answer.status, headers, body)

    def note(self, fault: Fault) -> None:
        """Counts a fault; the log gets at most one line a minute."""
        self.ended[fault] += 1
        if time.monotonic() - self._last_log_time >= _LOG_SECONDS:
            self._last_log_time = time.monotonic()
            counts = ", ".join(f"{name} {number:,}" for name, number in self.ended.items())
            _log.warning("connections that were ended since the start: %s", counts)

    def hold(self, num_bytes: int) -> bool:
        """Reserves bytes; false if there is no room. A negative number frees them."""
        self._buffer_bytes += num_bytes
        return self._buffer_bytes <= self.limits.buffer_bytes

    def _check_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._next_check = loop.call_later(self.limits.check_seconds, self._check_all, loop)

    def _check_all(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next_check = None
        for connection in tuple(self._connections):
            connection.check(loop.time())
        if self._connections:
            self._check_later()


def most_connections() -> int:
    """The number of connections that the limit of open files allows.

    Raises that limit as far as permitted.
    """
    _, allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = 2**20 if allowed == resource.RLIM_INFINITY else allowed
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, allowed))
    return min(max(files - _RESERVED_FILES, files // 2), _MOST_CONNECTIONS)


def _problem(fault: Fault, limits: Limits) -> tuple[int, Problem]:
    """The status and the text of a refusal."""
    if fault == "large":
        large = f"a body has at most {limits.body_bytes:,} bytes; send less"
        return 413, Problem(kind="input", message=large, retryable=False)
    if fault == "slow":
        message = f"the request did not arrive in {limits.body_seconds:g} s; try again"
        return 408, Problem(kind="input", message=message, retryable=True)
    full = "the service is full; try again after the seconds in Retry-After"
    return 503, Problem(
        kind="capacity", message=full, retryable=True, retry_after_seconds=_PAUSE_SECONDS
    )
