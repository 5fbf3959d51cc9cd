"""How the service's process listens: the settings that a step's cost depends on."""

import gc
import logging
from contextlib import suppress

import uvicorn
from starlette.types import ASGIApp

from agentworld.http.protected_http import guarded_http
from agentworld.http.protected_websocket import guarded_socket
from agentworld.http.protection import Guard
from agentworld.http.rate_limited_log import Seldom

# Episodes in memory are many small objects that live long. By its default the collector walks all
# of them after every 700 new ones, which took a seventh of the processor's time.
_NEW_OBJECTS = 100_000
# What the guard counts, and what is none of a client's faults.
_UNTOLD = "Invalid HTTP request received.", "Unsupported upgrade request."


def listen(app: ASGIApp, guard: Guard, host: str, port: int) -> None:
    """Answers until the process is told to stop."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 20, 100)
    # What a client can make a service log, it can make it log without end.
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(Seldom(_UNTOLD))
    with suppress(KeyboardInterrupt):
        server(app, guard, host, port).run()


def server(app: ASGIApp, guard: Guard, host: str, port: int) -> uvicorn.Server:
    """One that slow and misbehaving clients do not hurt."""
    limits = guard.limits
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        http=guarded_http(guard),
        ws=guarded_socket(guard),
        ws_max_size=limits.body_bytes,
        ws_ping_interval=limits.ping_seconds,
        ws_ping_timeout=limits.ping_seconds,
        ws_per_message_deflate=False,  # costs more than a loopback or a cluster's network does
    )
    return uvicorn.Server(config)
