"""What a protocol offers to the service, and which there are.

A protocol of another package is an entry point of the group `agentworld.protocols`, and is served
where AGENTWORLD_PROTOCOLS names it.
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
    """Holds what the protocol needs while the service runs."""


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
    """The protocol of this name for a service; raises InputError where there is none."""
    return _KINDS.find(name)(app)
