"""What a service does not take from its clients, and what it has told of those that it refused.

uvicorn bounds next to nothing: a client may send half a request and stay, or never read its
answer. The bounds are kept where bytes come in (guarded_http.py, guarded_socket.py) and not before
the endpoints, for such a client seldom gets as far as an endpoint, and a step need not pay for it.
"""

import logging
import math
import resource
import time
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Literal, NamedTuple

from agentworld.http.naming import Answering
from agentworld.http.openai_errors import Telling, in_openai_words, is_openai
from agentworld.http.schemas import Failure, Problem
from agentworld.records.base import Digest

_log = logging.getLogger(__name__)

Fault = Literal["broken", "slow", "silent", "unread", "large", "head", "capacity"]
"""Why a connection was ended:

    broken    it sent what is no HTTP, or no frame
    slow      a request, or a message on a WebSocket, did not come to an end in its time
    silent    a WebSocket answered no ping
    unread    an answer was not read
    large     a body, or a message on a WebSocket, was too large
    head      the head of a request was too large
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
    head_seconds: float = 10.0
    """Until the head of a request is here, the first one's since the connection was accepted."""
    headers: int = 100
    unread_seconds: float = 30.0
    """How long a client may read nothing while there is something for it to read."""
    ping_seconds: float = 20.0
    """How often a WebSocket is pinged, and how long it may take to answer."""
    linger_seconds: float = 2.0
    """How long a refused client that still sends is not cut off: it would be told of a reset in
    place of the refusal."""
    buffer_bytes: int = 256 * 2**20
    """Of unfinished bodies and unread answers of all clients together."""
    connections: int = _MOST_CONNECTIONS


class _Refusal(NamedTuple):
    """The kind of a problem, and the answer in our words and in OpenAI's."""

    kind: str
    ours: bytes
    openais: bytes


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
        self._count_refusal = count_refusal
        self._buffer_bytes = 0
        self._logged = -math.inf
        self._refusals = {
            status: _Refusal(
                problem.kind,
                _answer(Telling(status, {}, Failure(error=problem)), problem, simulator),
                _answer(in_openai_words(status, problem), problem, simulator),
            )
            for status, problem in _problems(limits).items()
        }

    def refusal(self, fault: Fault, path: str = "") -> bytes:
        """The whole HTTP response, in the words of the address that was asked, where one was."""
        kind, ours, openais = self._refusals[_STATUS[fault]]
        self._count_refusal(kind)
        return openais if is_openai(path) else ours

    def note(self, fault: Fault) -> None:
        """Counts; the log gets a line a minute at most, however many clients there are."""
        self.ended[fault] += 1
        if time.monotonic() - self._logged >= _LOG_SECONDS:
            self._logged = time.monotonic()
            counts = ", ".join(f"{name} {number:,}" for name, number in self.ended.items())
            _log.warning("connections that were ended since the start: %s", counts)

    def hold(self, more: int) -> bool:
        """Whether there is room for so many more bytes; a negative number makes room."""
        self._buffer_bytes += more
        return self._buffer_bytes <= self.limits.buffer_bytes


def most_connections() -> int:
    """How many this process can have, as it may have open files, when nothing else runs short.

    Asks for all the files that it is allowed to ask for.
    """
    _, allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = 2**20 if allowed == resource.RLIM_INFINITY else allowed
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, allowed))
    return min(max(files - _RESERVED_FILES, files // 2), _MOST_CONNECTIONS)


_STATUS: dict[Fault, int] = {
    "broken": 400,
    "slow": 408,
    "large": 413,
    "head": 431,
    "capacity": 503,
}


def _problems(limits: Limits) -> dict[int, Problem]:
    wrong = {
        400: "this is no HTTP request",
        413: f"a body has at most {limits.body_bytes:,} bytes; send less",
        431: f"a head has at most {limits.head_bytes:,} bytes and {limits.headers} headers;"
        " send less",
    }
    late = f"the request did not arrive in {limits.body_seconds:g} s; try again"
    full = "the service has no room for this now; try again after the seconds in Retry-After"
    return {
        **{code: Problem(kind="input", message=m, retryable=False) for code, m in wrong.items()},
        408: Problem(kind="input", message=late, retryable=True),
        503: Problem(
            kind="capacity", message=full, retryable=True, retry_after_seconds=_PAUSE_SECONDS
        ),
    }


def _answer(telling: Telling, problem: Problem, simulator: Digest | None) -> bytes:
    body = telling.failure.model_dump_json().encode()
    headers = {
        "content-type": "application/json",
        "content-length": len(body),
        "connection": "close",
        **telling.headers,
        **Answering(simulator).headers,
    }
    if problem.retry_after_seconds is not None:
        headers["retry-after"] = math.ceil(problem.retry_after_seconds)
    lines = [
        f"HTTP/1.1 {telling.status} {HTTPStatus(telling.status).phrase}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body
