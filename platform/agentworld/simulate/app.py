"""The only wiring: a manifest, an engine and a ledger make a service."""

import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache

from fastapi import FastAPI, Request, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentworld import __version__
from agentworld.access import Access
from agentworld.client.simulator import SIMULATOR_HEADER
from agentworld.engine.base import Engine
from agentworld.engine.breaker import State
from agentworld.errors import AgentworldError
from agentworld.ledger import Ledger
from agentworld.records.simulator import SimulatorManifest
from agentworld.simulate.allowance import Allowance
from agentworld.simulate.doors import chat, native, openenv, openenv_http
from agentworld.simulate.doors.tools import ToolsDoor
from agentworld.simulate.entrance import House
from agentworld.simulate.failures import add_handlers
from agentworld.simulate.gate import Gate
from agentworld.simulate.housekeeping import again_and_again
from agentworld.simulate.manifest import check_code
from agentworld.simulate.sealing import Sealer
from agentworld.simulate.service import SimulatorService

_log = logging.getLogger(__name__)


def create_app(
    manifest: SimulatorManifest,
    engine: Engine,
    ledger: Ledger,
    sealer: Sealer,
    access: Access,
    *,
    states: Callable[[], Mapping[str, State]] = dict,
    idle_seconds: float = 3600.0,
    seal_seconds: float = 10.0,
    answer_seconds: float = 50.0,
    loopback_only: bool = False,
) -> FastAPI:
    """The service of one pinned simulator; raises InputError where this code is not the pinned.

    Who may come is for `access` to say; `loopback_only` also turns away pages of other sites.
    An episode without a step for `idle_seconds` is ended; logs are signed every `seal_seconds`
    and when the service ends. `states` tells of each replica of the engine whether it is asked.
    A socket hears within `answer_seconds` what became of its step, or that nobody knows.
    """
    check_code(manifest)
    service = SimulatorService(manifest, engine, ledger, sealer, states=states)
    tools = ToolsDoor(service.digest)

    @asynccontextmanager
    async def working(_app: FastAPI) -> AsyncIterator[None]:
        async with (
            again_and_again(service.seal, seal_seconds),
            again_and_again(lambda: service.expire(idle_seconds), idle_seconds / 10),
            tools.working(),
        ):
            yield
        try:
            await service.close()
        except AgentworldError as error:
            _log.warning("%s; what was answered last is chained and not signed", error)
        finally:
            await engine.close()
            ledger.close()

    app = FastAPI(
        title="agentworld simulator", version=__version__, lifespan=working, openapi_url=None
    )
    app.state.house = House(service, access, Allowance(access, service.owners))
    app.state.engine_states = states
    app.state.answer_seconds = answer_seconds
    # As they are: to include a router makes its routes anew, which takes a tenth of a second.
    for router in (native.router, openenv_http.router, chat.router):
        app.router.routes += router.routes
    app.router.routes += [openenv.ROUTE, tools.route]
    app.add_route("/openapi.json", _openapi(app), include_in_schema=False)
    app.add_middleware(Gate, access=access, loopback_only=loopback_only)
    app.add_middleware(_Named, digest=service.digest)
    add_handlers(app)
    return app


def _openapi(app: FastAPI) -> Callable[[Request], Response]:
    """Written once: to write it takes as long as many steps, and anybody may ask for it."""
    written = cache(lambda: json.dumps(app.openapi()).encode())
    return lambda _request: Response(written(), media_type=native.JSON)


class _Named:
    """Writes the simulator's digest on every response, failures included."""

    def __init__(self, app: ASGIApp, digest: str) -> None:
        self._app = app
        self._digest = digest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # frames name the simulator themselves
            await self._app(scope, receive, send)
            return

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[SIMULATOR_HEADER] = self._digest
            await send(message)

        await self._app(scope, receive, send_named)
