"""uvicorn's settings for our services."""

import gc
import logging
from contextlib import suppress
from functools import partial
from typing import Any, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from agentworld.http.connection import Connection
from agentworld.http.limited_app import LimitedApp
from agentworld.http.protection import Guard
from agentworld.http.rate_limited_log import RateLimitedLog

# Episodes in memory are many small objects that live long. By default the collector traverses all
# of them after every 700 new ones, which took a seventh of the processor's time. With this it does
# so rarely, and traverses recent objects, such as those of a closed WebSocket, more often.
_NEW_OBJECTS, _YOUNG_RUNS, _OLD_RUNS = 100_000, 5, 400
# uvicorn's messages about errors of clients alone
IGNORED_MESSAGES = "Unsupported upgrade request.", "Invalid UTF-8 sequence received from client."


class _Protocol(H11Protocol):
    """uvicorn's protocol, with an answer to a HEAD or CONNECT request whose body is invalid."""

    def send_400_response(self, msg: str) -> None:
        """Closes the connection without a body if h11 allows none; uvicorn's own method fails."""
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:
            self.transport.close()


def listen(app: ASGIApp, guard: Guard, host: str, port: int) -> None:
    """Serves until a signal stops the process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, _YOUNG_RUNS, _OLD_RUNS)
    # A client could fill the log with repetitions.
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(RateLimitedLog(IGNORED_MESSAGES))
    with suppress(KeyboardInterrupt):
        server(app, guard, host, port).run()


def server(app: ASGIApp, guard: Guard, host: str, port: int) -> uvicorn.Server:
    """A server that slow and misbehaving clients cannot block."""
    limits = guard.limits

    def make_connection(**settings: Any) -> Connection:
        return Connection(guard, partial(_Protocol, **settings))

    config = uvicorn.Config(
        LimitedApp(app, guard),
        host=host,
        port=port,
        log_level="warning",
        # httptools is faster by 20 us a request, and limits neither heads nor pipelined requests.
        http=cast(type[Connection], make_connection),
        h11_max_incomplete_event_size=limits.head_bytes,
        ws="websockets-sansio",
        ws_max_size=limits.body_bytes,
        ws_ping_interval=limits.ping_seconds,
        ws_ping_timeout=limits.pong_seconds,
        ws_per_message_deflate=False,  # costs more than a cluster's network
    )
    return uvicorn.Server(config)
