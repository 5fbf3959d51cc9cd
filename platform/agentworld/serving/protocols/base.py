"""The type of a protocol, and the table of protocols.

Another package adds a protocol by an entry point of the group `agentworld.protocols`. The service
serves it if AGENTWORLD_PROTOCOLS names it.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import NamedTuple

from fastapi import FastAPI
from starlette.routing import BaseRoute

from agentworld.kinds import Kinds


class Protocol(NamedTuple):
    """The routes of a protocol, each of which calls the same authorized service."""

    routes: Sequence[BaseRoute]
    lifespan: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    """A context that is open while the service runs."""


OpenProtocol = Callable[[FastAPI], Protocol]
"""Makes the protocol of one service."""

_KINDS = Kinds[OpenProtocol](
    group="agentworld.protocols",
    noun="protocol",
    attribute="open_protocol",
    modules={
        "http": "agentworld.serving.protocols.native",
        "openenv": "agentworld.serving.protocols.openenv",
        "openai": "agentworld.serving.protocols.chat",
        "mcp": "agentworld.serving.protocols.mcp",
    },
)


def open_protocol(name: str, app: FastAPI) -> Protocol:
    """Opens the protocol of this name for a service; raises InputError for an unknown name."""
    return _KINDS.find(name)(app)
