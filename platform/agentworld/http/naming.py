"""Adds the simulator's digest to responses."""

from typing import cast

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentworld.client.simulator import SIMULATOR_HEADER
from agentworld.records.base import Digest

_KEY = "agentworld.answering"


class AnsweringSimulator:
    """The simulator of a request; the code that resolves it writes it here."""

    __slots__ = ("simulator",)

    def __init__(self, simulator: Digest | None = None) -> None:
        self.simulator = simulator

    @classmethod
    def of(cls, scope: Scope) -> "AnsweringSimulator":
        """The one of a request; unused for a WebSocket, whose frames name the simulator."""
        answering = scope.get(_KEY)
        return cls() if answering is None else cast(AnsweringSimulator, answering)

    @property
    def headers(self) -> dict[str, str]:
        """The response headers."""
        return {} if self.simulator is None else {SIMULATOR_HEADER: self.simulator}


class SimulatorHeader:
    """Adds the simulator's digest to every response of a service with one simulator, errors
    included; with several, to responses about a run or an episode that the caller may see.
    """

    def __init__(self, app: ASGIApp, simulator: Digest | None) -> None:
        self._app = app
        self._simulator = simulator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # an object, because inner code may have a copy of the scope
        answering = scope[_KEY] = AnsweringSimulator(self._simulator)

        async def send_with_header(message: Message) -> None:
            if message["type"] == "http.response.start" and answering.simulator is not None:
                MutableHeaders(scope=message)[SIMULATOR_HEADER] = answering.simulator
            await send(message)

        await self._app(scope, receive, send_with_header)
