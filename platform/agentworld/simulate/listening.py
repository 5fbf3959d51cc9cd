"""How the service's process listens: the settings that a step's cost depends on."""

import gc
import logging
from contextlib import suppress

import uvicorn
from starlette.types import ASGIApp

from agentworld.simulate.entrance import House
from agentworld.simulate.guard import Guard, Limits, most_connections
from agentworld.simulate.guarded_http import guarded_http
from agentworld.simulate.guarded_socket import guarded_socket
from agentworld.simulate.seldom import Seldom

# Episodes in memory are many small objects that live long. By its default the collector walks all
# of them after every 700 new ones, which took a seventh of the processor's time.
_NEW_OBJECTS = 100_000
# What the guard counts, and what is none of a client's faults.
_UNTOLD = "Invalid HTTP request received.", "Unsupported upgrade request."


def listen(app: ASGIApp, house: House, host: str, port: int) -> None:
    """Answers for the house until the process is told to stop."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 20, 100)
    # What a client can make a service log, it can make it log without end.
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(Seldom(_UNTOLD))
    guard = guard_of(house, Limits(connections=most_connections()))
    with suppress(KeyboardInterrupt):
        server(app, guard, host, port).run()


def guard_of(house: House, limits: Limits) -> Guard:
    """Names the house's simulator, where it has one, and counts among what it refused."""
    return Guard(house.simulators.only, limits, house.keeper.metrics.told)


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
