"""What a service does not take from its clients, and what it has told of those that it refused.

uvicorn bounds next to nothing: a client may send half a request and stay, or never read its
answer. The bounds are kept where bytes come in (connection.py) and around the service as a whole
(limited_app.py); server.py sets what uvicorn bounds itself.
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

    broken    it sent what uvicorn fails at
    slow      a request, or a large message on a WebSocket, did not come to an end in its time
    unread    an answer was not read
    large     a body was too large, or too much came on a WebSocket before a message was whole
    capacity  there were too many connections, or too much was held for such clients
"""

_MOST_CONNECTIONS = 20_000
_RESERVED_FILES = 256
_LOG_SECONDS = 60.0
_PAUSE_SECONDS = 1.0


class Limits(NamedTuple):
    """What a client may do; each default is generous to an honest one."""

    body_bytes: int = 4 * 2**20
    """Of a request's body, and of a message on a WebSocket."""
    body_seconds: float = 30.0
    """Until all of that is here."""
    head_bytes: int = 64 * 2**10
    """Of a request."""
    head_seconds: float = 10.0
    """Until the head of a request is here, the first one's since the connection was accepted."""
    unread_seconds: float = 30.0
    """How long a client may read nothing while there is something for it to read."""
    ping_seconds: float = 20.0
    """How often a WebSocket is pinged."""
    pong_seconds: float = 60.0
    """How long it may take to answer. While it waits for a step, which may take 50 s, nobody reads
    what comes behind a message that it sent ahead."""
    linger_seconds: float = 2.0
    """How long a refused client that still sends is not cut off: it would be told of a reset in
    place of the refusal."""
    check_seconds: float = 1.0
    """How often connections are checked for being late."""
    buffer_bytes: int = 256 * 2**20
    """Of unfinished bodies and unread answers of all clients together."""
    connections: int = _MOST_CONNECTIONS


class Refusal(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes


class GuardedConnection(Protocol):
    """A connection, of which the guard knows this alone."""

    def check(self, now: float) -> None:
        """Ends it where it is late."""


class Guard:
    """What the connections of one service share; `count_refusal` is called with the kind of each
    refusal that a client is answered.
    """

    def __init__(
        self, simulator: Digest | None, limits: Limits, count_refusal: Callable[[str], None]
    ) -> None:
        """A refusal names the simulator where there is one, for nobody has read which is asked."""
        self.limits = limits
        self.ended: Counter[Fault] = Counter()
        """Connections, since the start."""
        self._simulator = simulator
        self._count_refusal = count_refusal
        self._connections: set[GuardedConnection] = set()
        self._next_check: asyncio.TimerHandle | None = None
        self._buffer_bytes = 0
        self._last_log_time = -math.inf

    def add(self, connection: GuardedConnection) -> int:
        """Checks it from now on; returns how many connections there are too many."""
        self._connections.add(connection)
        if self._next_check is None:
            self._check_later()
        return len(self._connections) - self.limits.connections

    def discard(self, connection: GuardedConnection) -> None:
        """It is closed."""
        self._connections.discard(connection)

    def refusal(self, fault: Fault, path: str) -> Refusal:
        """The answer in the words of the address that was asked."""
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
        """Counts; the log gets a line a minute at most, however many clients there are."""
        self.ended[fault] += 1
        if time.monotonic() - self._last_log_time >= _LOG_SECONDS:
            self._last_log_time = time.monotonic()
            counts = ", ".join(f"{name} {number:,}" for name, number in self.ended.items())
            _log.warning("connections that were ended since the start: %s", counts)

    def hold(self, num_bytes: int) -> bool:
        """Whether there is room for so many more bytes; a negative number makes room."""
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
    """How many this process can have, as it may have open files, when nothing else runs short.

    Asks for all the files that it is allowed to ask for.
    """
    _, allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = 2**20 if allowed == resource.RLIM_INFINITY else allowed
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, allowed))
    return min(max(files - _RESERVED_FILES, files // 2), _MOST_CONNECTIONS)


def _problem(fault: Fault, limits: Limits) -> tuple[int, Problem]:
    """The status and the words of a refusal."""
    if fault == "large":
        large = f"a body has at most {limits.body_bytes:,} bytes; send less"
        return 413, Problem(kind="input", message=large, retryable=False)
    if fault == "slow":
        message = f"the request did not arrive in {limits.body_seconds:g} s; try again"
        return 408, Problem(kind="input", message=message, retryable=True)
    full = "the service has no room for this now; try again after the seconds in Retry-After"
    return 503, Problem(
        kind="capacity", message=full, retryable=True, retry_after_seconds=_PAUSE_SECONDS
    )
